/**
 * fast-check, with the same cases at every run. `DXPU_PROPERTY_SEED=N` draws others; `npm run soak --
 * properties` does so over many seeds. Whatever fails is pinned in a test of its own.
 */
import fc from 'fast-check';

const SEED = 1;

const asked = process.env['DXPU_PROPERTY_SEED'] ?? String(SEED);
if (!/^-?\d{1,10}$/.test(asked)) {
  throw new Error(`DXPU_PROPERTY_SEED is a whole number, not ${JSON.stringify(asked)}`);
}
fc.configureGlobal({ seed: Number(asked) });

export { fc };

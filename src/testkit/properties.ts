/**
 * fast-check, with the same cases at every run. `DXPU_PROPERTY_SEED=N` draws others; `npm run soak --
 * properties` does so over many seeds. Whatever fails is pinned in a test of its own.
 */
import fc from 'fast-check';

const SEED = 1;

fc.configureGlobal({ seed: Number(process.env['DXPU_PROPERTY_SEED'] ?? SEED) });

export { fc };

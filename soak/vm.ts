/**
 * A stock Linux in a stock QEMU as a host of the pool, for a while: GPU nodes of all kinds are bound and unbound
 * round after round, links are cut under a running multiplication, and a host proxy, a box and the guest itself go
 * and come back. At the end nothing of it is left: no open file, mapping, process or socket.
 */
import { parseArgs } from 'node:util';
import { vmNeeds } from '#testkit/vm/vm-needs';
import { VmSoak } from './support/vm-soak.ts';

const HELP = `npm run soak -- vm [options]

A real VM as a host of the pool: rounds of bind and unbind, cuts of the link, kills of processes.
Needs gcc, and Debian's packages of QEMU and Linux: from a mirror the first time, then from the cache.

  --rounds N   GPU nodes bound and unbound, of three kinds, 50 unless given
  --cuts N     cuts of two seconds under a running multiplication, 5 unless given
  --kills N    times each: the host proxy, a box; resets and panics of the guest, 3 unless given
`;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    cuts: { type: 'string', default: '5' },
    kills: { type: 'string', default: '3' },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const [rounds = 0, cuts = 0, kills = 0] = [options.rounds, options.cuts, options.kills].map(Number);
if (![rounds, cuts, kills].every((count) => Number.isSafeInteger(count) && count >= 0)) {
  console.error('vm: --rounds, --cuts and --kills take whole numbers from 0');
  process.exit(2);
}
const needs = await vmNeeds();
if (typeof needs === 'string') {
  console.error(`vm: ${needs}`);
  process.exit(2);
}

const begin = Date.now();
const soak = await VmSoak.start(needs, (text) => {
  console.log(`${((Date.now() - begin) / 1000).toFixed(0).padStart(5)} s  ${text}`);
});
try {
  await soak.rounds(rounds);
  await soak.times(cuts, ['cutLink']);
  await soak.times(kills, ['killHost', 'killBox', 'reset', 'panic']);
  await soak.killVm();
  for (const [name, count] of soak.counts) console.log(`  ${name.padEnd(24)} ${count}`);
  console.log(`all as it must be, ${((Date.now() - begin) / 1000).toFixed(0)} s`);
} catch (error) {
  console.error(error);
  console.error(soak.lastWords());
  process.exitCode = 1;
} finally {
  await soak.end();
}
process.exit();

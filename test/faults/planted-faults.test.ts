/**
 * Each check of the invariants left out in turn: the fault worlds notice, within a few seeds, and say
 * which invariant is broken.
 */
import { type Planted, testPlanted } from '#testkit/campaign/campaign-tests';
import { FAULT_WORLDS, type PlantedFaults } from '#testkit/faults/fault-world';
import { Invariant } from '#testkit/faults/oracle';

const { FENCED, CONTAINED, EXACT, LOUD, PROGRESS, REPEATABLE } = Invariant;

/** Within so many seeds a planted fault must show. */
const SEEDS = 40;

const PLANTED: readonly Planted<PlantedFaults, Invariant>[] = [
  ['a host proxy asks no slot whose it is', { host: { noPeerFence: true } }, FENCED],
  ['a host proxy looks at no generation', { host: { noGenerationFence: true } }, FENCED],
  ['a box proxy asks no slot whose it is', { box: { noPeerFence: true } }, FENCED],
  ['a box proxy looks at no generation', { box: { noGenerationFence: true } }, FENCED],
  ['a slot goes to its next tenant as it is', { box: { noScrub: true } }, FENCED],

  ['translated addresses pass', { host: { noAddressTypeCheck: true } }, CONTAINED],
  ['config and I/O requests pass upwards', { host: { noConfigRefusal: true } }, CONTAINED],
  ['any requester ID passes', { host: { noRequesterIdCheck: true } }, CONTAINED],
  ['bus mastering need not be on', { host: { noBusMasterCheck: true } }, CONTAINED],
  ['addresses above 2^53 pass', { host: { noAddressCheck: true } }, CONTAINED],
  ['any interrupt passes', { host: { noInterruptMatch: true } }, CONTAINED],
  ['windows are memory nobody has registered', { host: { noPeerCheck: true } }, CONTAINED],
  ['read-only memory is written', { host: { noAccessCheck: true } }, CONTAINED],
  ['answers need no question', { host: { noCompletionCheck: true } }, CONTAINED],
  ['memory taken back stays reachable', { host: { noMemoryBarrier: true } }, CONTAINED],

  ['a frame that comes twice is delivered twice', { link: { noDuplicateFilter: true } }, EXACT],
  ['frames are delivered as they come', { link: { noSequenceCheck: true } }, EXACT],
  ['a session resumes without what was lost', { link: { noReplay: true } }, EXACT],

  ['CPU reads are forgotten at link-down', { host: { noAbort: true } }, LOUD],
  ['a host slot comes up again by itself', { host: { noContainment: true } }, LOUD],
  ['DMA reads are forgotten at link-down', { box: { noAbort: true } }, LOUD],
  ['a box slot stays ready without a session', { box: { noContainment: true } }, LOUD],

  ['a session takes along what never ran in it', { box: { bindsWhileResuming: true } }, PROGRESS],
  ['one queue for all classes', { link: { headOfLine: true } }, PROGRESS],
  ['nobody asks the ordering table', { link: { noOrdering: true } }, PROGRESS],
  ['nobody minds credits', { link: { noCreditWait: true, noCreditCheck: true } }, PROGRESS],

  ['a device draws from Math.random', { unseeded: true }, REPEATABLE],
];

testPlanted(FAULT_WORLDS, SEEDS, PLANTED);

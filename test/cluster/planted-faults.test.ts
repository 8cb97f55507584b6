/**
 * Each check of the invariants left out in turn: the virtual clusters notice, within a few seeds, and say
 * which invariant is broken.
 */
import { type Planted, testPlanted } from '#testkit/campaign/campaign-tests';
import { ClusterInvariant } from '#testkit/cluster/cluster-oracle';
import { CLUSTERS, type PlantedClusterFaults } from '#testkit/cluster/cluster-world';

const {
  SINGLE_OWNER,
  FENCED,
  USABLE,
  STORE_OWNS,
  NOTHING_LOST,
  ALL_OR_NOTHING,
  PROGRESS,
  REPEATABLE,
} = ClusterInvariant;

/** Within so many seeds a planted fault must show. */
const SEEDS = 150;

const PLANTED: readonly Planted<PlantedClusterFaults, ClusterInvariant>[] = [
  ['a slot is given away before its box confirms', { pool: { noConfirmation: true } }, FENCED],
  ['a slot is free before it is scrubbed', { pool: { skipsScrub: true } }, FENCED],
  ['another attempt keeps its generation', { pool: { reusesGeneration: true } }, FENCED],
  ['a report makes an owner', { pool: { actsOnReports: true } }, STORE_OWNS],
  ['answers go out before the commit', { pool: { answersBeforeCommit: true } }, NOTHING_LOST],
  ['a repeated request acts again', { pool: { forgetsRequests: true } }, ALL_OR_NOTHING],
  ['any function counts as attached', { pool: { attachedEarly: true } }, USABLE],

  ['agents report what should be', { agent: { reportsWhatShouldBe: true } }, STORE_OWNS],
  ['agents keep rows ordered away', { agent: { keepsOldRow: true } }, PROGRESS],
  ['agents take orders out of turn', { agent: { appliesStaleOrder: true } }, STORE_OWNS],
  ['agents call a refused order done', { agent: { claimsRefusedOrder: true } }, STORE_OWNS],

  ['boxes hand slots on as they are', { box: { noScrub: true } }, FENCED],
  [
    'both ends keep their old rows',
    { box: { keepsRows: true }, host: { keepsRows: true } },
    SINGLE_OWNER,
  ],

  ['the last commit dies with the process', { store: { losesLastCommit: true } }, NOTHING_LOST],
  ['a batch is written in part', { store: { tearsBatches: true } }, NOTHING_LOST],
  ['the schema takes two owners', { store: { noUniqueOwners: true } }, SINGLE_OWNER],

  ['a user draws from Math.random', { unseeded: true }, REPEATABLE],
];

testPlanted(CLUSTERS, SEEDS, PLANTED);

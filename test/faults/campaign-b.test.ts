// The other half of the seeds: two files, so that two cores share the work.
import { testSeeds } from '#testkit/faults/fault-tests';

testSeeds(501, 1000);

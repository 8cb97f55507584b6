// The other half of the seeds: two files, so that two cores share the work.
import { testSeeds } from './test-seeds.ts';

testSeeds(501, 1000);

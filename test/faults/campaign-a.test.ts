import { testSeeds } from '#testkit/faults/fault-tests';

testSeeds(1, 500);

// The other half of the seeds: two files, so that two cores share the work.
import { testFaultWorlds } from '#testkit/faults/fault-tests';

testFaultWorlds(501, 1000);

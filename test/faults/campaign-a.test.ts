import { testFaultWorlds } from '#testkit/faults/fault-tests';

testFaultWorlds(1, 500);

import { testClusters } from '#testkit/cluster/cluster-tests';

testClusters(1, 500);

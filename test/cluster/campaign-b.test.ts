// The other half of the seeds: two files, so that two cores share the work.
import { testClusters } from '#testkit/cluster/cluster-tests';

testClusters(501, 1000);

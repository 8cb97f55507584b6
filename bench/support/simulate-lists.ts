/** The lists of the simulate benchmark: the shared ones where they are, made-up ones where not. */
import { existsSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { EXAMPLE_LISTS } from '#simulator/example-lists';
import { readNodes } from '#simulator/node-list';
import { readPods } from '#simulator/pod-list';
import type { StudyLists } from '#simulator/study';
import { workloadOf } from '#simulator/workload';

const FOLDER = path.resolve(process.env['DXPU_DATA'] ?? '../shared/data', 'cluster', 'openb');
export const NODES_FILE = path.join(FOLDER, 'openb_node_list_gpu_node.csv');
export const PODS_FILE = path.join(FOLDER, 'openb_pod_list_default.csv');

export const hasShared = existsSync(NODES_FILE) && existsSync(PODS_FILE);
export const NO_SHARED = `${FOLDER} has no lists; DXPU_DATA names another folder of shared data`;

/** Machines and requests whose mix is scaled up: the published default list, or the made-up lists. */
export function mixOfLists(): StudyLists {
  return hasShared
    ? listsOf(readFileSync(NODES_FILE, 'utf8'), readFileSync(PODS_FILE, 'utf8'))
    : listsOf(EXAMPLE_LISTS.nodes.text(), EXAMPLE_LISTS.pods.text());
}

function listsOf(nodes: string, pods: string): StudyLists {
  const machines = readNodes('nodes', nodes);
  const workload = workloadOf(readPods('pods', pods).map(({ demand }) => demand));
  return { machines, workload };
}

/**
 * A slot of a model box. The hardware outlives the process, with whatever tenants left in it; the rest is
 * what one process knows.
 */
import type { BoxSlotReport, BoxSlotStateName, GpuNodeReport } from '#proto/agent-messages';
import type { BoxPlan } from './plan.ts';

export class NodeHardware {
  /** `undefined` while nothing is plugged in. */
  node: GpuNodeReport | undefined;
  /** The generation whose tenant wrote into it last; 0 once scrubbed. */
  content = 0;
  /** Scrubs fail, or never end. */
  defect: 'fails' | 'hangs' | undefined;

  constructor(node: GpuNodeReport | undefined) {
    this.node = node;
  }
}

export class BoxHardware {
  readonly plan: BoxPlan;
  readonly nodes: readonly NodeHardware[];

  constructor(plan: BoxPlan) {
    this.plan = plan;
    this.nodes = plan.nodes.map((node) => new NodeHardware(node));
  }
}

export interface BoxSlotRow {
  readonly host: string;
  readonly generation: number;
}

export class ModelBoxSlot {
  readonly hardware: NodeHardware;
  row: BoxSlotRow | undefined;
  /** Rows a hostile box lets pass besides. */
  secret: BoxSlotRow[] = [];
  state: BoxSlotStateName = 'unused';
  reason = '';
  dirty = true;
  isScrubbing = false;
  highestGeneration = 0;
  /** Of the link to the row's host this slot takes part in; 0 for none. */
  session = 0;
  /** What was shown last. */
  shown: BoxSlotReport | undefined;

  constructor(hardware: NodeHardware) {
    this.hardware = hardware;
  }
}

export function isSameBoxRow(a: BoxSlotRow | undefined, b: BoxSlotRow | undefined): boolean {
  return a !== undefined && b !== undefined && a.host === b.host && a.generation === b.generation;
}

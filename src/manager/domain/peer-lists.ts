/**
 * Which boxes each host keeps links to: every box it reaches whose agent is there, and those its
 * bindings are in. A box whose agent goes keeps its links for a while, so that an agent that is
 * restarted, or a manager, tears none down; changes reach the hosts in steps of a second, for a pool
 * that starts would else send every host a list for every box.
 */
import type { Nanos } from '#base/units';
import type { HostOrder } from '#proto/agent-messages';
import { DeadlineLists } from './deadline-lists.ts';
import { type Box, type Host, type Inventory, isReporting } from './inventory.ts';
import { compareText } from './sorted-keys.ts';

const ABSENCE_MS = 60_000;
const STEP_NS = 1e9;

type Peers = NonNullable<HostOrder['peers']>;

interface Group {
  version: number;
  /** Goes up when the list is another one. */
  serial: number;
  content: string;
  list: Peers;
}

export class PeerLists {
  readonly #absences = new DeadlineLists<Box>();
  /** Hosts with the same reach share a list. */
  readonly #groups = new Map<string, Group>();
  /** Boxes that are peers, by zone. */
  readonly #zones = new Map<string, Set<Box>>();
  #version = 1;
  #isPending = false;
  #dueNs = 0;

  /** Restored boxes are peers, until they have been away for long. */
  constructor(inventory: Inventory) {
    for (const box of inventory.boxes.values()) this.#join(box);
  }

  /** The box reports now, maybe with another zone or other endpoints. */
  came(box: Box): void {
    this.#absences.clear(box);
    this.#part(box);
    this.#join(box);
    this.#isPending = true;
  }

  /** The box's agent is not there. */
  left(now: Nanos, box: Box): void {
    this.#absences.set(box, now, ABSENCE_MS);
  }

  nextDeadlineNs(): number {
    return Math.min(this.#absences.nextNs(), this.#isPending ? this.#dueNs : Infinity);
  }

  /** Whether every host's list must be looked at: at most once a second. */
  takeStep(now: Nanos): boolean {
    for (const box of this.#absences.takeDue(now)) {
      if (isReporting(box)) continue;
      this.#part(box);
      this.#isPending = true;
    }
    if (!this.#isPending || now < this.#dueNs) return false;
    this.#isPending = false;
    this.#dueNs = now + STEP_NS;
    this.#version++;
    return true;
  }

  /** The host's list; equal keys stand for equal lists. */
  of(host: Host): { readonly key: string; readonly list: Peers } {
    const { reach } = host.record;
    const name = JSON.stringify(reach);
    const group = this.#group(name, reach);
    const extra: Box[] = [];
    for (const { binding } of host.slots.values()) {
      const box = binding?.boxSlot.box;
      if (box === undefined || extra.includes(box)) continue;
      if (box.peerZone === undefined || !reaches(reach, box.peerZone)) extra.push(box);
    }
    const key = `${name} ${group.serial} ${extra.map(describe).join()}`;
    if (extra.length === 0) return { key, list: group.list };
    return { key, list: [...group.list, ...extra.map(toPeer)] };
  }

  #join(box: Box): void {
    const { zone } = box.record;
    box.peerZone = zone;
    const boxes = this.#zones.get(zone);
    if (boxes === undefined) this.#zones.set(zone, new Set([box]));
    else boxes.add(box);
  }

  #part(box: Box): void {
    if (box.peerZone === undefined) return;
    const boxes = this.#zones.get(box.peerZone);
    boxes?.delete(box);
    if (boxes?.size === 0) this.#zones.delete(box.peerZone);
    box.peerZone = undefined;
  }

  #group(name: string, reach: readonly string[]): Group {
    let group = this.#groups.get(name);
    if (group?.version === this.#version) return group;
    const boxes: Box[] = [];
    for (const zone of reach.length === 0 ? this.#zones.keys() : new Set(reach)) {
      boxes.push(...(this.#zones.get(zone) ?? []));
    }
    boxes.sort((a, b) => compareText(a.id, b.id));
    const content = boxes.map(describe).join();
    if (group === undefined) {
      group = { version: 0, serial: 0, content: '', list: [] };
      this.#groups.set(name, group);
    }
    group.version = this.#version;
    if (group.content !== content) {
      group.serial++;
      group.content = content;
      group.list = boxes.map(toPeer);
    }
    return group;
  }
}

function reaches(reach: readonly string[], zone: string): boolean {
  return reach.length === 0 || reach.includes(zone);
}

function toPeer({ id, record }: Box): Peers[number] {
  return { box: id, endpoints: record.endpoints };
}

function describe({ id, record }: Box): string {
  return JSON.stringify([id, record.endpoints]);
}

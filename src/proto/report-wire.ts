/** Reports of agents, to the wire and back. Checks are in wire-fields.ts. */
import { create } from '@bufbuild/protobuf';
import {
  BOX_SLOT_STATES,
  type BoxReport,
  type BoxSlotReport,
  type FunctionReport,
  type GpuNodeReport,
  HOST_SLOT_STATES,
  type HostReport,
  type HostSlotReport,
  type PathReport,
  type WindowReport,
} from './agent-messages.ts';
import * as pb from './generated/dxpu/agent/v1/agent_pb.ts';
import * as field from './wire-fields.ts';

export function boxReportToWire(report: BoxReport): pb.BoxReport {
  return create(pb.BoxReportSchema, {
    applied: BigInt(report.applied),
    whole: report.whole,
    highestGeneration: BigInt(report.highestGeneration ?? 0),
    slots: report.slots.map((slot) => ({
      slot: slot.slot,
      ...(slot.node === undefined ? {} : { node: nodeToWire(slot.node) }),
      state: field.enumNumber(slot.state, BOX_SLOT_STATES) as pb.BoxSlotState,
      clean: slot.clean,
      ...(slot.row === undefined
        ? {}
        : { row: { host: slot.row.host, generation: BigInt(slot.row.generation) } }),
      reason: field.fitMessage(slot.reason),
    })),
    refused: field.fitMessage(report.refused),
  });
}

export function boxReportFromWire(report: pb.BoxReport): BoxReport {
  const slots = field.list('', 'slots', report.slots, field.MAX_BOX_SLOTS, boxSlotFromWire);
  field.distinct('', 'slots', slots, ({ slot }) => slot);
  return {
    kind: 'box',
    applied: field.safeNumber('', 'applied', report.applied),
    whole: report.whole,
    ...highestFromWire(report.highestGeneration),
    slots,
    refused: field.message('', 'refused', report.refused),
  };
}

function highestFromWire(value: bigint): { highestGeneration?: number } {
  if (value === 0n) return {};
  return { highestGeneration: field.safeNumber('', 'highest_generation', value) };
}

function boxSlotFromWire(report: pb.BoxSlotReport, at: string): BoxSlotReport {
  const { node, row } = report;
  return {
    slot: field.wholeNumber(at, 'slot', report.slot, field.MAX_SLOT),
    node: node === undefined ? undefined : nodeFromWire(node, `${at}.node`),
    state: field.enumName(at, 'state', report.state, BOX_SLOT_STATES),
    clean: report.clean,
    row:
      row === undefined
        ? undefined
        : {
            host: field.name(at, 'row.host', row.host),
            generation: field.safeNumber(at, 'row.generation', row.generation, 1),
          },
    reason: field.message(at, 'reason', report.reason),
  };
}

function nodeToWire(node: GpuNodeReport): pb.GpuNode {
  return create(pb.GpuNodeSchema, {
    uuid: node.uuid,
    model: node.model,
    memoryBytes: BigInt(node.memoryBytes),
    nvlinkGroup: node.nvlinkGroup,
    bars: node.bars.map((bar) => ({
      index: bar.index,
      sizeBytes: BigInt(bar.sizeBytes),
      prefetchable: bar.prefetchable,
      is64: bar.is64,
    })),
  });
}

function nodeFromWire(node: pb.GpuNode, at: string): GpuNodeReport {
  const bars = field.list(at, 'bars', node.bars, field.MAX_BARS, (bar, barAt) => ({
    index: field.wholeNumber(barAt, 'index', bar.index, field.MAX_BARS - 1),
    sizeBytes: field.safeNumber(barAt, 'size_bytes', bar.sizeBytes, 1),
    prefetchable: bar.prefetchable,
    is64: bar.is64,
  }));
  field.distinct(at, 'bars', bars, ({ index }) => index);
  return {
    uuid: field.filledWord(at, 'uuid', node.uuid),
    model: field.filledWord(at, 'model', node.model),
    memoryBytes: field.safeNumber(at, 'memory_bytes', node.memoryBytes),
    nvlinkGroup: field.word(at, 'nvlink_group', node.nvlinkGroup),
    bars,
  };
}

export function hostReportToWire(report: HostReport): pb.HostReport {
  return create(pb.HostReportSchema, {
    applied: BigInt(report.applied),
    whole: report.whole,
    highestGeneration: BigInt(report.highestGeneration ?? 0),
    slots: report.slots.map(hostSlotToWire),
    paths: report.paths.map((path) => ({ ...path, problem: field.fitMessage(path.problem) })),
    refused: field.fitMessage(report.refused),
  });
}

export function hostReportFromWire(report: pb.HostReport): HostReport {
  const slots = field.list('', 'slots', report.slots, field.MAX_HOST_SLOTS, hostSlotFromWire);
  field.distinct('', 'slots', slots, ({ slot }) => slot);
  const paths = field.list('', 'paths', report.paths, field.MAX_PATHS, pathFromWire);
  // Neither name has a slash.
  field.distinct('', 'paths', paths, ({ box, path }) => `${box}/${path}`);
  return {
    kind: 'host',
    applied: field.safeNumber('', 'applied', report.applied),
    whole: report.whole,
    ...highestFromWire(report.highestGeneration),
    slots,
    paths,
    refused: field.message('', 'refused', report.refused),
  };
}

function hostSlotToWire(slot: HostSlotReport): pb.HostSlotReport {
  const { row, function: fn, problem } = slot;
  return create(pb.HostSlotReportSchema, {
    slot: slot.slot,
    secondaryBus: slot.secondaryBus,
    nonPrefetchable: windowToWire(slot.nonPrefetchable),
    prefetchable: windowToWire(slot.prefetchable),
    ...(row === undefined
      ? {}
      : { row: { box: row.box, boxSlot: row.boxSlot, generation: BigInt(row.generation) } }),
    state: field.enumNumber(slot.state, HOST_SLOT_STATES) as pb.HostSlotState,
    ...(fn === undefined ? {} : { function: functionToWire(fn) }),
    inUse: slot.inUse,
    ...(problem === undefined
      ? {}
      : { problem: { kind: problem.kind, message: field.fitMessage(problem.message) } }),
    reason: field.fitMessage(slot.reason),
  });
}

function hostSlotFromWire(report: pb.HostSlotReport, at: string): HostSlotReport {
  const { row, function: fn, problem } = report;
  return {
    slot: field.wholeNumber(at, 'slot', report.slot, field.MAX_SLOT),
    secondaryBus: field.wholeNumber(at, 'secondary_bus', report.secondaryBus, 255),
    nonPrefetchable: windowFromWire(at, 'non_prefetchable', report.nonPrefetchable),
    prefetchable: windowFromWire(at, 'prefetchable', report.prefetchable),
    row:
      row === undefined
        ? undefined
        : {
            box: field.name(at, 'row.box', row.box),
            boxSlot: field.wholeNumber(at, 'row.box_slot', row.boxSlot, field.MAX_SLOT),
            generation: field.safeNumber(at, 'row.generation', row.generation, 1),
          },
    state: field.enumName(at, 'state', report.state, HOST_SLOT_STATES),
    function: fn === undefined ? undefined : functionFromWire(fn, `${at}.function`),
    inUse: report.inUse,
    problem:
      problem === undefined
        ? undefined
        : {
            kind: field.filledWord(at, 'problem.kind', problem.kind),
            message: field.message(at, 'problem.message', problem.message),
          },
    reason: field.message(at, 'reason', report.reason),
  };
}

function windowToWire(window: WindowReport): pb.Window {
  return create(pb.WindowSchema, { base: BigInt(window.base), limit: BigInt(window.limit) });
}

function windowFromWire(at: string, name: string, window: pb.Window | undefined): WindowReport {
  const { base, limit } = field.part(at, name, window);
  return {
    base: field.safeNumber(at, `${name}.base`, base),
    limit: field.safeNumber(at, `${name}.limit`, limit),
  };
}

function functionToWire(fn: FunctionReport): pb.Function {
  return create(pb.FunctionSchema, {
    bdf: fn.bdf,
    vendorId: fn.vendorId,
    deviceId: fn.deviceId,
    bars: fn.bars.map((bar) => ({
      index: bar.index,
      address: BigInt(bar.address),
      sizeBytes: BigInt(bar.sizeBytes),
    })),
    memoryEnable: fn.memoryEnable,
    busMaster: fn.busMaster,
  });
}

function functionFromWire(fn: pb.Function, at: string): FunctionReport {
  const bars = field.list(at, 'bars', fn.bars, field.MAX_BARS, (bar, barAt) => ({
    index: field.wholeNumber(barAt, 'index', bar.index, field.MAX_BARS - 1),
    address: field.safeNumber(barAt, 'address', bar.address),
    sizeBytes: field.safeNumber(barAt, 'size_bytes', bar.sizeBytes, 1),
  }));
  field.distinct(at, 'bars', bars, ({ index }) => index);
  return {
    bdf: field.wholeNumber(at, 'bdf', fn.bdf, 0xffff),
    vendorId: field.wholeNumber(at, 'vendor_id', fn.vendorId, 0xffff),
    deviceId: field.wholeNumber(at, 'device_id', fn.deviceId, 0xffff),
    bars,
    memoryEnable: fn.memoryEnable,
    busMaster: fn.busMaster,
  };
}

function pathFromWire(path: pb.PathReport, at: string): PathReport {
  return {
    box: field.name(at, 'box', path.box),
    path: field.name(at, 'path', path.path),
    up: path.up,
    rttNs: field.measure(at, 'rtt_ns', path.rttNs),
    bitsPerSecond: field.measure(at, 'bits_per_second', path.bitsPerSecond),
    problem: field.message(at, 'problem', path.problem),
  };
}

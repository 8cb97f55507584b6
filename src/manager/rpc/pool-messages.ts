/** What the core knows, as messages of `dxpu.pool.v1`. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { DxpuError } from '#base/errors';
import { formatBdf } from '#base/units';
import type { Candidate, Plan, Refusal } from '#placement/demand';
import * as pb from '#proto/generated/dxpu/pool/v1/pool_pb';
import type { BindingView, BoxView, GpuView, HostView, PathView } from '../domain/pool.ts';
import { willRetry } from '../domain/observe.ts';
import { BINDING_STATES, type LoggedBinding, type LogRecord } from '../domain/records.ts';

const STATES: Readonly<Record<LoggedBinding['state'], pb.BindingState>> = {
  reserved: pb.BindingState.RESERVED,
  programming: pb.BindingState.PROGRAMMING,
  attaching: pb.BindingState.ATTACHING,
  attached: pb.BindingState.ATTACHED,
  draining: pb.BindingState.DRAINING,
  detaching: pb.BindingState.DETACHING,
  scrubbing: pb.BindingState.SCRUBBING,
  failed: pb.BindingState.FAILED,
  free: pb.BindingState.FREE,
};

/** The state of a record that a message names; `undefined` for none of them. */
export function bindingState(state: pb.BindingState): (typeof BINDING_STATES)[number] | undefined {
  return BINDING_STATES.find((one) => STATES[one] === state);
}

export function bindingViewMessage({ record, willRetry: again, live }: BindingView): pb.Binding {
  const message = bindingMessage(record, again);
  if (live !== undefined) {
    message.live = create(pb.LiveSchema, {
      memoryEnable: live.memoryEnable,
      busMaster: live.busMaster,
      inUse: live.inUse,
      roundTripNs: live.rttNs,
    });
  }
  return message;
}

/** A record by itself, as answers and log entries have it. */
export function bindingMessage(record: LoggedBinding, again = willRetry(record)): pb.Binding {
  const { failure, attachment } = record;
  return create(pb.BindingSchema, {
    id: record.id,
    state: STATES[record.state],
    leaving: record.goal === 'free',
    host: record.host,
    hostSlot: record.hostSlot,
    box: record.box,
    boxSlot: record.boxSlot,
    gpu: record.uuid,
    model: record.model,
    path: record.path,
    generation: BigInt(record.generation),
    ...(failure === undefined
      ? {}
      : {
          failure: {
            reason: failure.reason,
            message: failure.message,
            during: STATES[failure.during],
            retries: again,
            attempts: record.attempts,
          },
        }),
    requestedBy: record.requestedBy,
    requestId: record.requestId,
    created: timestampFromMs(record.createdMs),
    changed: timestampFromMs(record.changedMs),
    ...(attachment === undefined
      ? {}
      : {
          attachment: {
            bdf: formatBdf(attachment.bdf),
            bars: attachment.bars.map((bar) => ({
              index: bar.index,
              address: BigInt(bar.address),
              sizeBytes: BigInt(bar.sizeBytes),
            })),
          },
        }),
  });
}

/** What a plan would bind: without ids and generations. */
export function plannedBindings(plan: Plan): pb.Binding[] {
  return plan.picks.map((pick) =>
    create(pb.BindingSchema, {
      host: plan.demand.host,
      hostSlot: pick.hostSlot,
      box: pick.box,
      boxSlot: pick.slot,
      gpu: pick.uuid,
      model: pick.model,
      path: pick.path,
    }),
  );
}

export function planMessage(plan: Plan): pb.Plan {
  return create(pb.PlanSchema, {
    gpus: plan.picks.map((pick) => ({
      box: pick.box,
      slot: pick.slot,
      gpu: pick.uuid,
      hostSlot: pick.hostSlot,
      path: pick.path,
      roundTripNs: pick.rttNs,
    })),
  });
}

export function refusalMessage(refusal: Refusal): pb.Refusal {
  return create(pb.RefusalSchema, {
    summary: refusal.summary,
    reasons: refusal.reasons.map(({ reason, count, message }) => ({ reason, count, message })),
  });
}

/** A demand that is not met, as calls fail with it. */
export function refusalError(refusal: Refusal): DxpuError {
  return new DxpuError('resource_exhausted', refusal.summary, {
    details: { refusal: refusalMessage(refusal) },
  });
}

export function candidateMessage(candidate: Candidate): pb.Candidate {
  return create(pb.CandidateSchema, {
    box: candidate.box,
    slot: candidate.slot,
    gpu: candidate.uuid,
    reason: candidate.reason ?? '',
    message: candidate.message,
  });
}

export function boxMessage({ record, ...view }: BoxView): pb.Box {
  return create(pb.BoxSchema, {
    id: record.id,
    connected: view.connected,
    kind: record.boxKind,
    zone: record.zone,
    version: record.version,
    endpoints: record.endpoints.map(({ path, address }) => `${path}=${address}`),
    gpus: view.gpus,
    gpusFree: view.gpusFree,
    seen: timestampFromMs(record.seenMs),
    problem: view.problem,
  });
}

export function hostMessage({ record, ...view }: HostView): pb.Host {
  return create(pb.HostSchema, {
    id: record.id,
    connected: view.connected,
    version: record.version,
    slots: view.slots.map((slot) => ({
      slot: slot.slot,
      secondaryBus: slot.secondaryBus,
      nonPrefetchable: windowMessage(slot.nonPrefetchable),
      prefetchable: windowMessage(slot.prefetchable),
      binding: slot.binding,
      state: slot.state,
    })),
    seen: timestampFromMs(record.seenMs),
    problem: view.problem,
  });
}

function windowMessage({ base, limit }: { base: number; limit: number }): pb.Window {
  return create(pb.WindowSchema, { base: BigInt(base), limit: BigInt(limit) });
}

export function gpuMessage({ record, ...view }: GpuView): pb.Gpu {
  const { node } = record;
  return create(pb.GpuSchema, {
    uuid: node.uuid,
    model: node.model,
    memoryBytes: BigInt(node.memoryBytes),
    nvlinkGroup: node.nvlinkGroup,
    box: record.box,
    slot: record.slot,
    state: view.state,
    binding: view.binding,
    host: view.host,
    reason: view.reason,
  });
}

export function pathMessage(path: PathView): pb.Path {
  return create(pb.PathSchema, {
    host: path.host,
    box: path.box,
    path: path.path,
    up: path.up,
    roundTripNs: path.rttNs,
    bitsPerSecond: path.bitsPerSecond,
    problem: path.problem,
  });
}

export function logMessage(record: LogRecord): pb.LogEntry {
  return create(pb.LogEntrySchema, {
    position: BigInt(record.position),
    time: timestampFromMs(record.atMs),
    actor: record.actor,
    requestId: record.requestId,
    subjectKind: record.subjectKind,
    subject: record.subject,
    action: record.action,
    message: record.message,
    ...(record.binding === undefined ? {} : { binding: bindingMessage(record.binding) }),
  });
}

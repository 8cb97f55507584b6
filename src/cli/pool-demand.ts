/** What is asked of GPU nodes, from the command line, and the answer "no" for people. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { DxpuError } from '#base/errors';
import {
  type DemandSchema,
  type Refusal,
  RefusalSchema,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import { withOptionNames } from './option-names.ts';
import { formatTable } from './output.ts';
import { plainOf } from './pool-plain.ts';

/** As the options of `bind` and `explain` are parsed. */
export interface DemandOptions {
  readonly gpus: number;
  readonly host: string;
  readonly model?: string;
  /** Bytes. */
  readonly memory?: number;
  readonly sameBox?: boolean;
  readonly nvlink?: boolean;
  readonly boxKind?: 'pcie' | 'nvswitch';
  /** Nanoseconds. */
  readonly maxRtt?: number;
}

export function demandOf(options: DemandOptions): MessageInitShape<typeof DemandSchema> {
  return {
    gpus: options.gpus,
    host: options.host,
    model: options.model ?? '',
    memoryBytes: BigInt(options.memory ?? 0),
    sameBox: options.sameBox === true,
    nvlink: options.nvlink === true,
    boxKind: options.boxKind ?? '',
    maxRoundTripNs: options.maxRtt ?? 0,
  };
}

/** The summary and, below it, how many GPU nodes were left out for which reason. */
export function refusalText({ summary, reasons }: Refusal): string {
  if (reasons.length === 0) return summary;
  const rows = reasons.map(({ count, reason, message }) => [count, reason, message]);
  return `${summary}\n${formatTable(['gpus', 'reason', ''], rows)}`;
}

/** A refusal of the manager with its reasons spelt out; other errors name options. */
export function spelledOut(error: DxpuError): DxpuError {
  const { refusal } = error.details;
  if (!isRefusal(refusal)) return withOptionNames(error);
  return new DxpuError(error.code, refusalText(refusal), {
    details: { ...error.details, refusal: plainOf(RefusalSchema, refusal) },
    cause: error,
  });
}

/** Whether an error's `details.refusal` is one of the contract. */
export function isRefusal(value: unknown): value is Refusal {
  const typeName: string = RefusalSchema.typeName;
  return (
    typeof value === 'object' &&
    value !== null &&
    '$typeName' in value &&
    value.$typeName === typeName
  );
}

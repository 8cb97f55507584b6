/** Words of the pool commands; apart from their code, for help and completion come without it. */
import { BINDING_STATES } from '#manager/domain/records';

export const GET_KINDS = ['boxes', 'hosts', 'gpus', 'paths', 'bindings'] as const;
export type GetKind = (typeof GET_KINDS)[number];

export const DESCRIBE_KINDS = ['box', 'host', 'gpu', 'binding'] as const;
export type DescribeKind = (typeof DESCRIBE_KINDS)[number];

/** Those a binding that is there can be in. */
export const STATE_WORDS: readonly string[] = BINDING_STATES;

/** Of a pool that `dxpu up` or `dxpu start` makes and nobody says more of. */
export const USUAL_SIZES = { boxes: 2, gpus: 4, hosts: 2, slots: 4 } as const;

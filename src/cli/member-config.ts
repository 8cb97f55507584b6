/** The `manager` part of a box's or host's configuration, and what must not stand beside it. */
import type { z } from 'zod';
import type { HostAndPort } from '#agent/daemon/endpoint';
import type { ConfigFile, ConfigProblem } from './config-file.ts';
import * as schema from './config-schema.ts';

export const managerFields = schema
  .fields({
    address: schema.endpoint.refine(
      ({ port }) => port !== 0,
      'port 0 leads nowhere: write the port the manager listens on',
    ),
    id: schema.name.optional(),
  })
  .optional();

/** Where the manager is. */
export interface ManagerPlace {
  readonly address: HostAndPort;
  /** Where given, no other will do. */
  readonly id: string | undefined;
}

export function managerOf(parsed: z.infer<typeof managerFields>): ManagerPlace | undefined {
  return parsed === undefined ? undefined : { address: parsed.address, id: parsed.id };
}

/** Fields a manager stands for: with one they may not be there, without one they must. */
export function checkStandsFor(
  source: ConfigFile,
  fields: Readonly<Record<string, string>>,
): ConfigProblem[] {
  const isManaged = source.has(['manager']);
  return Object.entries(fields).flatMap(([field, what]): ConfigProblem[] => {
    if (source.has([field]) !== isManaged) return [];
    if (!isManaged) return [{ path: [field], message: 'is missing' }];
    const message = `${what} from the manager: take ${field} out, or manager`;
    return [{ path: [field], message, atKey: true }];
  });
}

/** A process that was started without a manager cannot get one by a reload, nor the other way round. */
export function checkSameKind(
  inForce: { readonly manager: ManagerPlace | undefined } | undefined,
  next: ManagerPlace | undefined,
): ConfigProblem[] {
  if (inForce === undefined || (inForce.manager === undefined) === (next === undefined)) return [];
  const message = 'whether there is a manager is settled at the start: restart the process';
  return [{ path: ['manager'], message }];
}

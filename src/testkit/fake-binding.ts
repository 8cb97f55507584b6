/** Bindings of host h1 and box b1, as a manager answers with them. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Binding,
  BindingSchema,
  type BindingState,
} from '#proto/generated/dxpu/pool/v1/pool_pb';

let clockMs = 0;

/** As the manager has it at this moment: each is later than the one before. */
export function fakeBinding(
  id: string,
  state: BindingState,
  more: MessageInitShape<typeof BindingSchema> = {},
): Binding {
  return create(BindingSchema, {
    id,
    state,
    host: 'h1',
    box: 'b1',
    changed: timestampFromMs(clockMs++),
    ...more,
  });
}

/** Why one failed. `attempts`: since somebody asked for it. */
export const fakeFailure = (reason: string, retries: boolean, attempts = 0) => ({
  reason,
  retries,
  attempts,
  message: `because of ${reason}`,
});

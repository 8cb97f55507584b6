/** Back to a function as it was before software touched it, as far as software can bring that about. */
import {
  BAR_COUNT,
  BASE_ADDRESS_0,
  COMMAND,
  DEVICE_CONTROL,
  LOWER_HALF,
  UPPER_HALF,
} from './function-registers.ts';
import type { FunctionSurvey } from './function-survey.ts';
import { configRead, configWrite } from './host-operations.ts';
import type { SoftHost } from './root-complex.ts';
import { sleep, type Task } from './task.ts';

const INITIATE_FUNCTION_LEVEL_RESET = 1 << 15;
/** 6.6.2: software waits so long before it uses the function again. */
const FUNCTION_LEVEL_RESET_NS = 100e6;

/**
 * By Function Level Reset if the function has it, else by hand: no memory, no bus mastering, no MSI, no
 * addresses. In both cases nothing of it reaches memory any more.
 */
export function* resetFunction(
  soft: SoftHost,
  bdf: number,
  { flrOffset, msi }: Pick<FunctionSurvey, 'flrOffset' | 'msi'>,
): Task<void> {
  if (flrOffset !== undefined) {
    const register = flrOffset + DEVICE_CONTROL;
    const control = (yield* configRead(soft, bdf, register)) & 0xffff;
    yield* configWrite(soft, bdf, register, control | INITIATE_FUNCTION_LEVEL_RESET, LOWER_HALF);
    yield* sleep(FUNCTION_LEVEL_RESET_NS);
    return;
  }
  yield* configWrite(soft, bdf, COMMAND, 0, LOWER_HALF);
  if (msi !== undefined) yield* configWrite(soft, bdf, msi.offset, 0, UPPER_HALF);
  for (let bar = 0; bar < BAR_COUNT; bar++) {
    yield* configWrite(soft, bdf, BASE_ADDRESS_0 + 4 * bar, 0);
  }
}

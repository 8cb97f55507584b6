/** What a slot of a VM waits for, in words. */
import type { FunctionSurvey } from '#host/function-survey';
import type { VmDevice } from './vm-device.ts';

export interface SlotFacts extends Pick<VmDevice, 'state' | 'refusal'> {
  /** As QEMU calls it. */
  readonly rootPort: string;
  /** Of the function that is in the slot. */
  readonly survey: FunctionSurvey | undefined;
  /** QEMU has a device there that is not that function. */
  readonly isForeign: boolean;
  readonly isConnected: boolean;
  /** The guest has given the root port some. */
  readonly hasWindows: boolean;
  /** The function is plugged in once the guest has had time to start. */
  readonly isWaiting: boolean;
  /** The guest has placed the function. */
  readonly isUsed: boolean;
}

/** What the slot waits for, or what of the function the guest does not see; `undefined`: neither. */
export function slotNote(facts: SlotFacts): string | undefined {
  const { rootPort, state, refusal, survey } = facts;
  if (state === 'removing' || facts.isForeign) {
    const waits = `the guest has yet to let go of the function at ${rootPort}`;
    if (refusal === '') return waits;
    return (
      `${waits} (${refusal}): if it does not, write 0 to the slot's power in /sys/bus/pci/slots of the ` +
      'guest, or reset the guest'
    );
  }
  if (survey === undefined) return undefined;
  if (!facts.isConnected) return 'the VM is not there';
  if (state === 'none' && !facts.hasWindows) {
    return `the guest has yet to set up root port ${rootPort}`;
  }
  if (facts.isWaiting)
    return 'the guest starts: the function is plugged in once it has had time to';
  if (state === 'there' && !facts.isUsed) {
    return 'the guest has yet to give the function its addresses';
  }
  if (!survey.hasMsix) return undefined;
  return 'its MSI-X is hidden from the guest: QEMU does not survive the removal of a device that shows it';
}

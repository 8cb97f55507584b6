import { expect, it } from 'vitest';
import { CompletionStatus, Tlp } from '#pcie/tlp';
import { decodeTlp, encodedTlpBytes, encodeTlp, TlpDecode } from '#pcie/tlp-codec';
import { AccelRig, BAR0, BAR2, DATA, HOST_BASE } from '#testkit/accel-rig';
import { fc } from '#testkit/properties';
import { Opcode } from './accel-command.ts';
import * as reg from './accel-registers.ts';

/** Values that sit on some edge, and any others. */
const word = fc.oneof(
  fc.constantFrom(0, 1, 2, 3, 15, 16, 0xffff_ffff, 0x1000, HOST_BASE % 2 ** 32, reg.RESET_KEY),
  fc.nat(0xffff_ffff),
);
const register = fc.oneof(
  fc
    .constantFrom(reg.CHANNEL_CONTROL, reg.RING_BASE_LO, reg.RING_BASE_HI, reg.RING_ENTRIES)
    .map((offset) => reg.CHANNEL_BASE + offset),
  fc.constantFrom<number>(reg.DOORBELL_BASE, reg.RESET, reg.INTERRUPT_STATUS),
  fc.nat(reg.BAR0_BYTES / 4 - 1).map((dw) => 4 * dw),
);
const smallOr = (choices: number[]): fc.Arbitrary<number> =>
  fc.oneof(fc.nat(3000), fc.constantFrom(...choices), fc.nat(2 ** 53 - 1));
const operand = smallOr([DATA, DATA + 1, 1 << 20, (1 << 20) - 4, 2 ** 53 - 1]);
const command = fc.record({
  opcode: fc.oneof(fc.constantFrom(...Object.values(Opcode)), fc.nat(255)),
  flags: fc.oneof(fc.nat(15), fc.nat(255)),
  durationNs: fc.nat(5000),
  fenceAddress: fc.oneof(fc.constantFrom(DATA, DATA + 8), operand),
  operand0: operand,
  operand1: operand,
  operand2: operand,
  m: fc.nat(20),
  n: fc.nat(20),
  k: fc.oneof(fc.nat(20), word),
  scalar: word,
});

type Step =
  | { readonly kind: 'register'; readonly offset: number; readonly value: number }
  | { readonly kind: 'enable' }
  | { readonly kind: 'run'; readonly commands: object[] }
  | { readonly kind: 'answer'; readonly pick: number; readonly status: CompletionStatus }
  | { readonly kind: 'config'; readonly offset: number; readonly value: number }
  | { readonly kind: 'memory'; readonly offset: number; readonly bytes: number }
  | { readonly kind: 'time'; readonly ns: number }
  | { readonly kind: 'reset' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('register' as const), offset: register, value: word }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('enable' as const) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('run' as const),
      commands: fc.array(command, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('answer' as const),
      pick: fc.nat(),
      status: fc.constantFrom(
        CompletionStatus.SC,
        CompletionStatus.SC,
        CompletionStatus.SC,
        CompletionStatus.UR,
        CompletionStatus.CA,
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('config' as const),
      offset: fc.nat(1023).map((dw) => 4 * dw),
      value: word,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('memory' as const),
      offset: fc.nat((1 << 20) + 64),
      bytes: fc.nat(4),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('time' as const), ns: fc.nat(3e9) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reset' as const) }) },
);

function take(rig: AccelRig, taken: Step): void {
  const { host } = rig;
  switch (taken.kind) {
    case 'register':
      rig.write(taken.offset, taken.value);
      rig.host.memoryRead(BAR0 + taken.offset, 4);
      break;
    case 'enable':
      rig.writeChannel(0, reg.CHANNEL_CONTROL, 0);
      rig.enable();
      break;
    case 'run':
      rig.run(...taken.commands);
      break;
    case 'answer': {
      if (host.waiting.length === 0) break;
      const [request] = host.waiting.splice(taken.pick % host.waiting.length, 1);
      if (taken.status === CompletionStatus.SC) host.answer(request as Tlp);
      else host.answerWith(request as Tlp, taken.status);
      break;
    }
    case 'config':
      host.configWrite(taken.offset, taken.value);
      break;
    case 'memory':
      host.memoryRead(BAR2 + Math.min(taken.offset, 2 ** 20 - 8), taken.bytes);
      break;
    case 'time':
      rig.passTime(host.now + taken.ns);
      break;
    default:
      rig.device.reset(host.now);
      host.waiting.length = 0;
      rig.device.scrub(host.now);
      rig.configure();
  }
}

it('whatever a driver does, the device answers, sends well-formed TLPs, and can be used after a reset', () => {
  const bytes = new Uint8Array(4200);
  const decoded = new Tlp();
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.boolean(), (steps, answers) => {
      const rig = new AccelRig({ tags: 8, memoryBytes: 1 << 20 });
      rig.host.answerReads = answers;
      rig.enable();
      for (const taken of steps) {
        take(rig, taken);
        // Timed-out requests count: their tags are held until they are answered.
        expect(rig.host.waiting.length).toBeLessThanOrEqual(8);
      }
      for (const { tlp } of rig.host.sent) {
        // `encodeTlp` asserts that the record is a valid TLP.
        const length = encodeTlp(tlp, bytes, 0);
        expect(length).toBe(encodedTlpBytes(tlp));
        expect(decodeTlp(bytes, 0, length, decoded)).toBe(TlpDecode.OK);
      }
      rig.device.reset(rig.host.now);
      rig.device.scrub(rig.host.now);
      rig.configure();
      rig.host.answerReads = true;
      rig.enable();
      rig.run({
        opcode: Opcode.FILL,
        operand1: 8,
        operand2: 1,
        scalar: 77,
        flags: 1,
        fenceAddress: DATA,
        fenceValue: 5,
      });
      expect(rig.view.getUint32(DATA - HOST_BASE, true)).toBe(5);
      expect(rig.host.read32(BAR2 + 8)).toBe(77);
      expect(rig.host.read32(BAR2 + 4)).toBe(0);
    }),
    { seed: 20240503, numRuns: 300 },
  );
});

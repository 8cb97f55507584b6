/**
 * Whatever the server of a remote device says, and whenever it goes: nothing is thrown, every request of a host is
 * answered once and within the time limit, nobody is answered what another has asked for, no descriptor is left,
 * and an honest server is used again.
 */
import { expect, it } from 'vitest';
import { Prng } from '#base/prng';
import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, FlowClass, flowClassOf, resetTlp, Tlp, TlpKind } from '#pcie/tlp';
import { requestByteCount } from '#pcie/completion';
import { fc } from '#testkit/properties';
import { RemoteRig, REMOTE_HOST_BASE } from '#testkit/remote-rig';
import { ExampleDevice, ExampleRegister } from '#testkit/vfio-user-device';

const BAR0 = 0xe000_0000;
const BAR2 = 0x40_0000_0000;
const STEPS = 60;
/** The time limit of a request. */
const LIMIT_MS = 3000;

class Scenario {
  readonly prng: Prng;
  readonly rig: RemoteRig;
  model = new ExampleDevice();
  /** Bytes each open request still has to be answered, by tag. */
  readonly open = new Map<number, number>();
  #tag = 0;
  /** How many messages of 16 are not as they should be. */
  #lies = 0;

  constructor(seed: number) {
    this.prng = new Prng(seed);
    this.rig = new RemoteRig(this.model);
    this.rig.run();
    this.rig.served.alter = ({ bytes }) => this.#alter(bytes);
    this.#program();
  }

  step(): void {
    const { prng, rig } = this;
    switch (prng.below(12)) {
      case 0:
        this.#lies = prng.pick([0, 0, 1, 4, 16]);
        break;
      case 1:
        this.#program();
        break;
      case 2:
        rig.run(prng.pick([1, 50, 500, 4000]));
        break;
      case 3:
        this.#comeAndGo();
        break;
      case 4:
        this.#unbind();
        break;
      case 5:
        this.model.client?.trigger(prng.below(3), prng.below(4));
        this.model.client?.setIntx(prng.chance(0.5));
        break;
      case 6:
        this.#dma();
        break;
      case 7:
        this.#release();
        break;
      default:
        this.#request();
    }
    rig.run();
    this.#collect();
  }

  /** An honest server: what is open is answered, and the device used again. */
  end(): void {
    const { rig } = this;
    this.#lies = 0;
    rig.run(LIMIT_MS);
    this.#collect();
    expect([...this.open.keys()]).toEqual([]);
    rig.served.kill();
    rig.run();
    expect(rig.served.fds.open).toBe(0);
    rig.served.device = this.model = new ExampleDevice();
    rig.run(12_000);
    expect(rig.reason).toBeUndefined();
    expect(rig.host.configRead(0)).toBe(0xcafe_1234);
  }

  #alter(bytes: Uint8Array): Uint8Array | undefined {
    const { prng } = this;
    if (prng.below(16) >= this.#lies) return bytes;
    if (prng.chance(0.2)) return undefined;
    const changed = bytes.slice();
    for (let flips = prng.between(1, 3); flips > 0; flips--) {
      const at = prng.below(Math.min(changed.length, 64));
      // A socket would have cut it as its size says.
      if (at < 4 || at > 7) changed[at] = prng.below(256);
    }
    return changed;
  }

  #program(): void {
    const { host } = this.rig;
    host.configWrite(0x10, BAR0);
    host.configWrite(0x18, 0);
    host.configWrite(0x1c, Math.floor(BAR2 / 2 ** 32));
    host.configWrite(0x44, 0xfee0_0000);
    host.configWrite(0x40, this.prng.chance(0.5) ? 1 << 16 : 0, 4);
    host.configWrite(0x04, this.prng.pick([0, 2, 4, 6, 6, 6, 6]), 3);
  }

  #comeAndGo(): void {
    const { rig, prng } = this;
    rig.served.kill();
    if (prng.chance(0.8)) rig.served.device = this.model = new ExampleDevice();
  }

  /** Answers a read the device has kept. */
  #release(): void {
    const access = this.model.held.shift();
    access?.complete(this.rig.clock.now(), new Uint8Array(access.count));
  }

  /** As a box does: nothing that was asked before is to be answered. */
  #unbind(): void {
    const { rig } = this;
    rig.run();
    this.#collect();
    rig.device.reset(rig.clock.now());
    // Had nobody used it, nothing of it is open; where it was not there, all has been answered.
    this.open.clear();
  }

  #dma(): void {
    const { rig, prng } = this;
    const address = prng.pick([REMOTE_HOST_BASE, REMOTE_HOST_BASE + (1 << 20) - 64, 2 ** 32 - 64]);
    const { host } = rig;
    host.write32(BAR0 + ExampleRegister.DMA_ADDRESS, address % 2 ** 32);
    host.write32(BAR0 + ExampleRegister.DMA_ADDRESS + 4, Math.floor(address / 2 ** 32));
    host.write32(BAR0 + ExampleRegister.DMA_LENGTH, prng.between(1, 5000));
    host.answerReads = prng.chance(0.8);
    host.postedCredits = prng.pick([0, 1, Infinity, Infinity]);
    host.write32(BAR0 + ExampleRegister.COMMAND, prng.between(1, 2));
    host.answerReads = true;
    host.answerAll();
    host.postedCredits = Infinity;
    host.resume();
  }

  #request(): void {
    const { prng, rig } = this;
    const tlp = new Tlp();
    // The lower ones are of the host in the small.
    const tag = 32 + (this.#tag++ % 992);
    if (prng.chance(0.3)) {
      resetTlp(tlp);
      tlp.kind = prng.chance(0.5) ? TlpKind.CfgRd0 : TlpKind.CfgWr0;
      tlp.lengthDw = 1;
      tlp.firstBe = prng.below(16);
      tlp.completerId = rig.host.bdf + (prng.chance(0.1) ? 1 : 0);
      tlp.register = 4 * prng.below(prng.chance(0.8) ? 32 : 1024);
      tlp.payload = Uint8Array.from({ length: 4 }, () => prng.below(256));
      tlp.payloadBytes = tlp.kind === TlpKind.CfgWr0 ? 4 : 0;
    } else {
      const base = prng.pick([BAR0, BAR2, BAR0 + 0x10_0000]);
      const isKept = prng.chance(0.2);
      const address = isKept
        ? BAR0 + ExampleRegister.HOLD
        : base + prng.below(prng.chance(0.5) ? 64 : 4096);
      const bytes = isKept ? 4 : prng.below(Math.min(200, 4096 - (address % 4096)));
      if (isKept || prng.chance(0.5)) {
        setMemoryRead(tlp, address, bytes, 0x10, tag);
      } else {
        setMemoryWrite(tlp, address, bytes, 0x10);
        tlp.payload = new Uint8Array(tlp.payloadBytes).fill(prng.below(256));
      }
    }
    if (flowClassOf(tlp.kind) === FlowClass.NON_POSTED) {
      tlp.requesterId = 0x10;
      tlp.tag = tag;
      this.open.set(tag, requestByteCount(tlp));
    }
    rig.host.toDevice(tlp);
  }

  /** Completions of requests that this has made, and not the host in the small. */
  #collect(): void {
    for (const { tlp } of this.rig.host.sent.splice(0)) {
      if (flowClassOf(tlp.kind) !== FlowClass.COMPLETION) continue;
      // Of the host's own: it asks one by one.
      const left = this.open.get(tlp.tag);
      if (left === undefined) {
        expect(tlp.tag).toBeLessThan(32);
        continue;
      }
      const got = tlp.payloadBytes === 0 ? left : tlp.payloadBytes - (tlp.lowerAddress & 3);
      const isLast = tlp.status !== CompletionStatus.SC || got >= left;
      if (isLast) this.open.delete(tlp.tag);
      else this.open.set(tlp.tag, left - got);
    }
  }
}

it('a remote device harms nobody, whatever its server says', () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const scenario = new Scenario(seed);
      for (let step = 0; step < STEPS; step++) scenario.step();
      scenario.end();
    }),
    { numRuns: 40 },
  );
});

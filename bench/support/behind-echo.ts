/**
 * A device served without a fabric that waits for a raw TLS round trip before it answers a read of a BAR: what the
 * least of fabrics would make of it, between the same client and the same device.
 */
import { ServedModel } from '#agent/daemon/served-model';
import type { Nanos } from '#base/units';
import { REGION_CONFIG } from '#vfio-user/region-info';
import type { RegionRead } from '#vfio-user/served-device';
import type { RawClient } from './raw-client.ts';

export class BehindEcho extends ServedModel {
  readonly #waiting: RegionRead[] = [];
  #request: (() => void) | undefined;
  isOn = false;

  /** Called once, before `isOn`. */
  useEcho(client: RawClient, now: () => Nanos): void {
    this.#request = client.echoing(() => {
      const access = this.#waiting.shift();
      if (access !== undefined) super.read(now(), access);
    });
  }

  override read(now: Nanos, access: RegionRead): void {
    if (!this.isOn || access.region === REGION_CONFIG) {
      super.read(now, access);
      return;
    }
    this.#waiting.push(access);
    this.#request?.();
  }
}

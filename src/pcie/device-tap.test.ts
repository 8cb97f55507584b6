import { expect, it } from 'vitest';
import { FakeDevice } from '#testkit/fake-device';
import type { Outage } from './device.ts';
import { DeviceTap } from './device-tap.ts';

it('shows the outage of its device, and its end', () => {
  const device = new FakeDevice() as FakeDevice & { outage?: Outage | undefined };
  const tap = new DeviceTap(device);
  device.outage = { kind: 'absent', reason: 'it is away' };
  expect(tap.outage).toBe(device.outage);
  device.outage = undefined;
  expect(tap.outage).toBeUndefined();
});

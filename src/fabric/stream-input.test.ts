import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { FRAME_HEADER_BYTES, MAX_FRAME_BYTES } from './frame-bounds.ts';
import { NO_FRAME, StreamInput } from './stream-input.ts';

function frameOf(bytes: number, seed: number): Uint8Array {
  const frame = Buffer.alloc(bytes, seed & 0xff);
  frame.writeUInt32BE(bytes, 4);
  return new Uint8Array(frame);
}

it('gives back every frame, whether bytes are appended or read into its room', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(fc.integer({ min: 8, max: 400 }), fc.integer({ min: 30_000, max: 300_000 })),
        {
          minLength: 1,
          maxLength: 8,
        },
      ),
      fc.array(fc.tuple(fc.integer({ min: 1, max: 200_000 }), fc.boolean()), { minLength: 1 }),
      (sizes, cuts) => {
        const frames = sizes.map((size, index) => frameOf(size, index));
        const stream = Buffer.concat(frames);
        const input = new StreamInput();
        let at = 0;
        let next = 0;
        for (let step = 0; at < stream.length; step++) {
          const [cut, isRead] = cuts[step % cuts.length] as [number, boolean];
          if (isRead) {
            const room = input.room();
            expect(room.length).toBeGreaterThanOrEqual(next === 0 ? 1024 : 64 * 1024);
            const part = stream.subarray(at, at + Math.min(cut, room.length));
            room.set(part);
            input.added(part.length);
            at += part.length;
          } else {
            input.append(stream.subarray(at, at + cut));
            at += Math.min(cut, stream.length - at);
          }
          for (;;) {
            const length = input.nextFrame();
            if (length === NO_FRAME) break;
            const found = input.bytes.subarray(input.begin, input.begin + length);
            expect(Buffer.compare(found, frames[next++] as Uint8Array)).toBe(0);
            input.take(length);
          }
        }
        expect(next).toBe(frames.length);
      },
    ),
    { numRuns: 60 },
  );
});

it('takes little memory from who sends no frame', () => {
  const input = new StreamInput();
  input.room();
  expect(input.bytes.buffer.byteLength).toBe(1024);
});

it.each([0, FRAME_HEADER_BYTES - 1, MAX_FRAME_BYTES + 1, 0xffff_ffff])(
  'tells a length of %i as soon as it has come',
  (length) => {
    const input = new StreamInput();
    const lie = Buffer.alloc(8);
    lie.writeUInt32BE(length, 4);
    input.append(lie.subarray(0, 7));
    expect(input.nextFrame()).toBe(NO_FRAME);
    input.append(lie.subarray(7));
    expect(input.nextFrame()).toBe(length);
  },
);

import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import type { DxpuError } from '#base/errors';
import { BindingState } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { fakeBinding as binding, fakeFailure as failure } from '#testkit/fake-binding';
import { FakePool } from '#testkit/fake-pool';
import { printed } from '#testkit/printed';
import { retryOn, unbindOn } from './bind.ts';

const OPTIONS = { output: 'table', timeout: 5e9 } as const;

describe('unbind and retry', () => {
  it('unbind --wait returns once they are gone; asks for each once', async () => {
    const asked: string[][] = [];
    const pool = new FakePool({
      unbind: ({ bindings, force }) => {
        asked.push([...bindings, String(force)]);
        pool.append({ binding: binding('b1', BindingState.FREE) });
        return {
          bindings: [binding('b1', BindingState.DRAINING, { changed: timestampFromMs(0) })],
        };
      },
    });
    const options = { ...OPTIONS, wait: true, force: true };
    const { stdout } = await printed(() => unbindOn(pool, ['b1', 'b1'], options));
    expect(asked).toEqual([['b1', 'true']]);
    expect(stdout).toMatch(/b1 +free /);
  });

  // A binding that had failed was taken for stuck by the very answer that says it is given back.
  it('unbind --wait of a binding that had failed waits for what comes of it (regression)', async () => {
    const asked = { failure: failure('link-down', false), leaving: true };
    const pool = new FakePool({
      unbind: () => ({ bindings: [binding('b1', BindingState.FAILED, asked)] }),
    });
    const running = printed(() => unbindOn(pool, ['b1'], { ...OPTIONS, wait: true }));
    await expect.poll(() => pool.watchedFrom).toHaveLength(1);
    pool.append({ binding: binding('b1', BindingState.FREE) });
    const { stdout, thrown } = await running;
    expect(thrown).toBeUndefined();
    expect(stdout).toMatch(/b1 +free /);
  });

  it('unbind that is stuck names the way that does not wait', async () => {
    const stuck = { failure: failure('drain-timeout', false, 1), leaving: true };
    const pool = new FakePool({
      unbind: () => ({ bindings: [binding('b1', BindingState.FAILED, stuck)] }),
    });
    const { thrown } = await printed(() => unbindOn(pool, ['b1'], { ...OPTIONS, wait: true }));
    expect((thrown as DxpuError).message).toContain(
      'still there: b1: look with dxpu describe binding b1; dxpu unbind --force b1',
    );
  });

  it('unbind --force that is stuck does not advise to --force (regression)', async () => {
    const stuck = { failure: failure('box-unreachable', false, 1), leaving: true };
    const pool = new FakePool({
      unbind: () => ({ bindings: [binding('b1', BindingState.FAILED, stuck)] }),
    });
    const options = { ...OPTIONS, wait: true, force: true };
    const { thrown } = await printed(() => unbindOn(pool, ['b1'], options));
    expect((thrown as DxpuError).message).toContain('dxpu get boxes shows which are away');
    expect((thrown as DxpuError).message).not.toContain('--force');
  });

  it('retry of an attached one says that there is nothing to retry', async () => {
    const pool = new FakePool({
      retry: () => ({
        bindings: [binding('b1', BindingState.ATTACHED), binding('b2', BindingState.FAILED)],
      }),
    });
    const { stderr } = await printed(() => retryOn(pool, ['b1', 'b2'], OPTIONS));
    expect(stderr).toBe(
      'binding b1 is attached: nothing to retry\n' +
        'follow with dxpu events --follow --binding b2, or use --wait next time\n',
    );
  });

  it('retry waits for them to be attached; a refusal comes as it is', async () => {
    const pool = new FakePool({
      retry: () => {
        throw new ConnectError('binding b9 is not there', Code.NotFound);
      },
    });
    const { thrown } = await printed(() => retryOn(pool, ['b9'], OPTIONS));
    expect(thrown).toMatchObject({ code: 'not_found', message: 'binding b9 is not there' });
  });
});

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recognise } from './recognise.ts';

let folder = '';
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dxpu-recognise-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Names say nothing: all are the same. */
async function fileOf(bytes: string | Uint8Array): Promise<string> {
  files += 1;
  const path = join(folder, `${files}.trace`);
  await writeFile(path, bytes);
  return path;
}

const TF_PROCESS =
  '{"traceEvents": [{"ph": "M", "name": "process_name", "args": {"name": "/gpu:0/stream:12 Compute"}}';

describe('formats by content', () => {
  it.each([
    ['kineto', '{"schemaVersion": 1, "traceEvents": []}'],
    ['kineto', '\uFEFF\n [{"ph": "X"'],
    ['kineto', '{"metadata": {"nodes": 2}, "deviceProperties": ['],
    ['tensorflow', TF_PROCESS],
    ['tensorflow', TF_PROCESS.replace('/gpu:0', '/device:GPU:1')],
    ['nsys', 'SQLite format 3\0'],
    ['nvprof', '==1== NVPROF is profiling process 1, command: ./a\n'],
    ['nvprof', '"Start","Duration","Grid X"\n'],
    ['nvprof', 'output of the program\n"Start","Duration","Grid X"\n'],
    ['nvprof', '"Type","Time(%)","Time","Calls"\n'],
  ])('%s', async (format, text) => {
    expect(await recognise(await fileOf(text))).toBe(format);
  });

  it('packed or not', async () => {
    expect(await recognise(await fileOf(gzipSync('{"traceEvents": []}')))).toBe('kineto');
    expect(await recognise(await fileOf(gzipSync('==1== NVPROF is')))).toBe('nvprof');
  });

  it('also where the packed file is cut short', async () => {
    const packed = gzipSync(`{"traceEvents": [${'{"ph": "X"}, '.repeat(1000)}]}`);
    expect(await recognise(await fileOf(packed.subarray(0, packed.length - 20)))).toBe('kineto');
  });
});

describe('what is refused says what it is and what to do', () => {
  const latin1 = (text: string): Uint8Array => Buffer.from(text, 'latin1');
  it.each<readonly [string, string | Uint8Array, RegExp]>([
    ['an empty file', '', /empty.*export_chrome_trace/],
    ['a report', 'NVIDIA Tegra Profiler Report 1.', /Nsight Systems.*nsys export --type sqlite/],
    ['a report of kernels', 'NVR\0\x01', /Nsight Compute.*nsys profile/],
    [
      'an execution trace',
      '{"schema": "1.0.1", "nodes": [',
      /execution trace.*export_chrome_trace/,
    ],
    ['an export as JSON', '{"Type":79,"CudaEvent":{"startNs":"1"', /as JSON.*--type sqlite/],
    [
      'a trace of TensorFlow 2',
      '{"traceEvents":[{"args":{"name":"/device:GPU:0"},"name":"process_name"}',
      /TensorFlow 2 or JAX.*nsys profile/,
    ],
    ['a summary', 'Time (%),Total Time (ns),Instances\n', /nsys stats.*nsys export/],
    ['a table of rocprof', '"Kind","Agent_Id","Start_Timestamp","End_Timestamp"\n', /rocprof/],
    ['UTF-16', latin1('\xff\xfe=\0=\0'), /UTF-16.*iconv/],
    ['zip', latin1('PK\x03\x04'), /zip.*unzip/],
    ['zstd', latin1('\x28\xb5\x2f\xfd'), /Zstandard.*zstd -d/],
    ['xz', latin1('\xfd7zXZ\0'), /xz.*unxz/],
    ['bzip2', 'BZh91AY', /bzip2.*bunzip2/],
    ['gzip twice', gzipSync(gzipSync('{}')), /gzip twice.*gunzip/],
    ['SQLite in gzip', gzipSync('SQLite format 3\0'), /SQLite.*gunzip/],
    ['tar', gzipSync(`${'x'.repeat(257)}ustar`), /tar archive/],
    ['a pickle', latin1('\x80\x04\x95'), /pickle/],
    ['a web page', '\n<!DOCTYPE html><html>', /web page/],
    ['a pointer', 'version https://git-lfs.github.com/spec/v1\n', /git lfs pull/],
    ['anything else', 'hello', /first bytes are 68 65 6c 6c 6f\. Give/],
  ])('%s', async (_, bytes, message) => {
    const path = await fileOf(bytes);
    await expect(recognise(path)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(message),
      details: { file: path },
    });
  });

  it('what is no file', async () => {
    await expect(recognise(folder)).rejects.toMatchObject({
      message: expect.stringMatching(/is a folder/),
    });
    await expect(recognise('/dev/null')).rejects.toMatchObject({
      message: expect.stringMatching(/pipe or a device/),
    });
    await expect(recognise(join(folder, 'none'))).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringMatching(/no such file/),
    });
  });
});

import { describe, expect, it } from 'vitest';
import { formatEndpoint, parseEndpoint } from './endpoint.ts';

describe('an endpoint', () => {
  it.each([
    ['127.0.0.1:7001', { host: '127.0.0.1', port: 7001 }],
    ['[fd00::1]:7001', { host: 'fd00::1', port: 7001 }],
    ['gpu-box.example:65535', { host: 'gpu-box.example', port: 65535 }],
  ])('%s is read, and written the same', (text, endpoint) => {
    expect(parseEndpoint(text)).toEqual(endpoint);
    expect(formatEndpoint(endpoint)).toBe(text);
  });

  it.each(['', '127.0.0.1', '127.0.0.1:65536', 'fd00::1:7001', 'a b:1', '[zz]:1', ':7001'])(
    '%j is none, and the error shows one',
    (text) => {
      expect(() => parseEndpoint(text)).toThrow('is not an address and port, as in 127.0.0.1:7001');
    },
  );
});

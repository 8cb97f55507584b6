import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';

// '#layer/module' resolves to src, so that nothing needs building to test.
const conditions = ['dxpu-source', ...defaultServerConditions];

/** Layers without processes or state of their own: their test files share one module graph, loaded once. */
const LAYERS = (
  'base pcie fabric devices host vfio-user proto identity ' +
  'trace perfmodel simulator placement report'
)
  .split(' ')
  .map((layer) => `src/${layer}/**/*.test.ts`);

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    pool: 'forks',
    // One more than cores: many tests wait for processes.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    dangerouslyIgnoreUnhandledErrors: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...LAYERS, 'test/e2e/**', 'test/vm/**'],
        },
      },
      {
        extends: true,
        test: { name: 'layers', include: LAYERS, isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts', 'test/vm/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});

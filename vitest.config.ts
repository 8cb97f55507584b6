import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// '#layer/module' resolves to src, so that nothing needs building to test.
const conditions = ['dxpu-source', ...defaultServerConditions];

/** Layers without state of a process: their test files share one module graph, loaded once. */
const LAYERS = (
  'base pcie fabric devices host vfio-user proto identity vm agent manager ' +
  'trace perfmodel emulator simulator placement report cli'
)
  .split(' ')
  .map((layer) => `src/${layer}/**/*.test.ts`);

/** The longest first, of those that wait for processes before those that compute: none runs alone at the end. */
const LONGEST = [
  'vm/vm',
  'manager/crash-points',
  'e2e/pool',
  'e2e/start',
  'faults/campaign-b',
  'emulator/htod-rate-128',
  'faults/campaign-a',
  'emulator/htod-rate-512',
  'e2e/',
  'cluster/',
];

class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((part) => moduleId.includes(`/${part}`));
      return at < 0 ? LONGEST.length : at;
    };
    return Promise.resolve(files.toSorted((a, b) => rank(a) - rank(b)));
  }
}

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    pool: 'forks',
    // One more than cores: many tests wait for processes.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
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

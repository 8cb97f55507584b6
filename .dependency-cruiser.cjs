// Who may import whom: an allow-list. A layer is a folder of src/. An import
// between layers that LAYERS does not name fails `npm run boundaries`; so does
// a folder of src/ that LAYERS does not know.

const LAYERS = {
  base: [],
  identity: ['base'],
  proto: ['base', 'identity'],
  pcie: ['base'],
  fabric: ['base', 'identity', 'pcie'],
  devices: ['base', 'pcie'],
  host: ['base', 'pcie'],
  'vfio-user': ['base', 'pcie'],
  vm: ['base', 'vfio-user'],
  trace: ['base'],
  report: ['base'],
  placement: ['base'],
  perfmodel: ['base', 'pcie', 'trace', 'report'],
  emulator: ['base', 'identity', 'pcie', 'fabric', 'devices', 'host', 'trace', 'report'],
  simulator: ['base', 'placement', 'report'],
  manager: ['base', 'identity', 'proto', 'placement'],
  agent: ['base', 'identity', 'proto', 'pcie', 'fabric', 'devices', 'host', 'vfio-user', 'vm'],
};
const everything = Object.keys(LAYERS);
LAYERS.cli = [...everything, 'dashboard'];
LAYERS.dashboard = everything;
LAYERS.testkit = [...everything, 'cli', 'dashboard'];

const TEST = '\\.test\\.ts$';
const anyOf = (names) => `^src/(?:${names.join('|')})/`;

const layerRules = Object.entries(LAYERS).flatMap(([layer, allowed]) => {
  const mayImport = (names) => ({
    path: '^(?:src|test|bench|soak|scripts)/',
    pathNot: anyOf(names),
  });
  const comment = `${layer} may import: ${allowed.join(', ') || 'no other layer'}.`;
  const own = `^src/${layer}/`;
  if (layer === 'testkit') {
    return [
      {
        name: 'testkit',
        severity: 'error',
        comment,
        from: { path: own },
        to: mayImport([layer, ...allowed]),
      },
    ];
  }
  return [
    {
      name: layer,
      severity: 'error',
      comment,
      from: { path: own, pathNot: TEST },
      to: mayImport([layer, ...allowed]),
    },
    {
      name: `${layer}-tests`,
      severity: 'error',
      comment: `Tests of a layer may import testkit too. ${comment}`,
      from: { path: `${own}.*${TEST}` },
      to: mayImport([layer, ...allowed, 'testkit']),
    },
  ];
});

module.exports = {
  forbidden: [
    ...layerRules,
    {
      name: 'known-layer',
      severity: 'error',
      comment: 'A new folder of src/ needs a row in LAYERS, and one in the table it mirrors.',
      from: { path: '^src/', pathNot: anyOf(Object.keys(LAYERS)) },
      to: {},
    },
    {
      name: 'to-known-layer',
      severity: 'error',
      comment: 'A new folder of src/ needs a row in LAYERS, and one in the table it mirrors.',
      from: {},
      to: { path: '^src/', pathNot: anyOf(Object.keys(LAYERS)) },
    },
    {
      name: 'testkit-in-tests-only',
      severity: 'error',
      comment:
        'Nothing but *.test.ts files, the rig of test/vm, soak runs and the benchmark with a VM may import testkit.',
      from: {
        pathNot: ['^src/testkit/', '^soak/', '^test/vm/', '^bench/(?:support/)?vm\\b', TEST],
      },
      to: { path: '^src/testkit/' },
    },
    {
      name: 'no-import-of-tests',
      severity: 'error',
      comment: 'What two tests share belongs in testkit.',
      from: {},
      to: { path: TEST },
    },
    {
      name: 'subpath-between-layers',
      severity: 'error',
      comment: "Between layers import '#layer/module'; a relative path is for one's own layer.",
      from: { path: '^src/([^/]+)/' },
      to: { path: '^src/', pathNot: '^src/$1/', dependencyTypesNot: ['aliased'] },
    },
    {
      name: 'subpath-from-outside',
      severity: 'error',
      comment: "From outside src import '#layer/module'; a built bench has no src beside it.",
      from: { path: '^(?:test|bench|soak)/' },
      to: { path: '^src/', dependencyTypesNot: ['aliased'] },
    },
    {
      name: 'properties-with-a-seed',
      severity: 'error',
      comment: "Import { fc } from '#testkit/properties': its cases are the same at every run.",
      from: { pathNot: '^src/testkit/properties[.]ts$' },
      to: { path: 'node_modules/fast-check' },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      comment: 'Modules must not import each other in a circle.',
      from: {},
      to: { circular: true },
    },
    {
      name: 'resolvable',
      severity: 'error',
      comment: 'The module does not exist, or its package is not installed.',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-dev-dependencies-in-shipped-code',
      severity: 'error',
      comment: 'What ships may only use "dependencies".',
      from: { path: '^src/', pathNot: [TEST, '^src/testkit/'] },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    exclude: { path: '(?:^|/)(?:dist[^/]*|coverage|\\.dxpu)/' },
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    parser: 'tsc',
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      conditionNames: ['dxpu-source', 'import', 'node', 'default'],
      exportsFields: ['exports'],
      extensions: ['.ts', '.mjs', '.cjs', '.js', '.json'],
    },
  },
};

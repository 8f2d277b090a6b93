/** The directions of imports: which module may import which, according to the sources. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { test } from 'node:test';
import { init, parse } from 'es-module-lexer';
import { PROJECT_PATH } from './support/project.ts';

await init;

interface Import {
  /** Path of the importing file, relative to the project. */
  readonly file: string;
  /** A path relative to the project, or the name of a package. */
  readonly target: string;
  readonly isPackage: boolean;
  /** True if the import disappears at run time. */
  readonly isType: boolean;
  /** True if it is loaded only when needed. */
  readonly isDeferred: boolean;
}

const sources = [...filesBelow('src'), ...filesBelow('machines')].map((file) => {
  const text = readFileSync(join(PROJECT_PATH, file), 'utf8');
  return { file, text, code: withoutComments(text) };
});
const imports = sources.flatMap(({ file, text }) => importsOf(file, text));

/** Imports that violate a rule, in the form `file imports target`. */
function offending(breaks: (found: Import) => boolean): string[] {
  return imports
    .filter(breaks)
    .map(({ file, target, isType }) => `${file} imports ${isType ? 'types of ' : ''}${target}`);
}

test('all sources are read, and their imports found', () => {
  assert.ok(sources.length > 60);
  const found = (file: string, target: string, isType: boolean) =>
    imports.some((i) => i.file === file && i.target === target && i.isType === isType);
  assert.ok(found('machines/invite.ts', 'xstate', false));
  assert.ok(found('machines/policy.ts', 'src/protocol/records/policy-manifest.ts', true));
  assert.ok(found('src/edge/http/server.ts', 'uWebSockets.js', false), 'by require');
  assert.ok(found('src/edge/http/send-reply.ts', 'uWebSockets.js', true), 'its types');
  assert.ok(
    found('src/cli/service/serve.ts', 'src/cli/service/serve-authority.ts', false),
    'at run time',
  );
  assert.ok(
    found('src/cli/service/serve.ts', 'src/cli/service/serve-authority.ts', true),
    'its types',
  );
  assert.ok(
    found('src/edge/reply.ts', 'src/protocol/refusals.ts', false),
    'types and values in one',
  );
});

test('every import of a file of our own names a file that exists', () => {
  const known = new Set(sources.map(({ file }) => file));
  assert.deepEqual(
    offending(({ target, isPackage }) => !isPackage && !known.has(target)),
    [],
  );
});

test('a folder of commands has at most ten files', () => {
  const folders = sources.map(({ file }) => dirname(file)).filter((path) => isIn(path, 'src/cli'));
  const crowded = [...new Set(folders)].filter(
    (path) => folders.filter((each) => each === path).length > 10,
  );
  assert.deepEqual(crowded, []);
});

test('machines are pure: they import xstate, each other, and types of records and claims', () => {
  assert.deepEqual(
    offending(({ file, target, isType }) => {
      if (!isIn(file, 'machines')) return false;
      const isRecordType =
        isType &&
        (isIn(target, 'src/protocol/records') || target === 'src/protocol/contract/claims.ts');
      return target !== 'xstate' && !isIn(target, 'machines') && !isRecordType;
    }),
    [],
  );
});

test('a single module runs the machines', () => {
  assert.deepEqual(
    offending(
      ({ file, target, isType }) =>
        target === 'machines/step.ts' && !isType && file !== 'src/authority/subjects/kinds.ts',
    ),
    [],
  );
});

test('machines read no clock, generate nothing random and do no input or output', () => {
  const impure = /\b(Date|performance|process|console|fetch|setTimeout|setInterval|await|crypto)\b/;
  const found = sources.filter(({ file, code }) => isIn(file, 'machines') && impure.test(code));
  assert.deepEqual(
    found.map(({ file }) => file),
    [],
  );
});

for (const [name, owners] of [
  ['xstate', ['machines']],
  ['lmdb', ['src/store/lmdb']],
  ['fs-native-extensions', ['src/store/lmdb/folder-lock.ts']],
  ['msgpackr', ['src/store/rows.ts']],
  ['pg', ['src/store/postgresql']],
  ['pg-connection-string', ['src/store/postgresql/address.ts']],
  ['pgpass', ['src/store/postgresql/connect.ts']],
  [
    'uWebSockets.js',
    [
      'src/edge/http/listener.ts',
      'src/edge/request/request-head.ts',
      'src/edge/http/passing.ts',
      'src/edge/http/send-reply.ts',
      'src/edge/http/server.ts',
      'src/edge/http/uploads.ts',
      'src/edge/http/viewers.ts',
    ],
  ],
  ['sodium-native', ['src/base/crypto/sodium.ts']],
  ['tweetnacl', ['src/base/crypto/strict-ed25519.ts', 'src/client/heartbeat-sessions.ts']],
  ['@noble/hashes/hmac.js', ['src/client/heartbeat-sessions.ts']],
  ['@noble/hashes/sha2.js', ['src/client']],
  ['commander', ['src/cli']],
  ['string-width', ['src/cli/kernel/output.ts']],
  ['d3-force', ['src/pages']],
  ['idiomorph', ['src/pages/browser/live.ts']],
  ['esbuild', ['src/build/build-browser.cjs', 'src/build/build-program.js']],
  ['prom-client', ['src/edge/metrics.ts', 'src/server/metrics']],
  ['ipaddr.js', ['src/edge/request/request-head.ts', 'src/server/outbound/lookup.ts']],
  ['fresh', ['src/edge/reply.ts']],
  ['sorted-btree', ['src/authority/subjects/sorted-texts.ts']],
  ['hdr-histogram-js', ['bench/load/latency.ts']],
  ['negotiator', ['src/edge/reply.ts']],
  ['age-encryption', ['src/maintenance/backup/encryption.ts']],
] as const) {
  test(`only ${owners.join(' and ')} may import ${name}`, () => {
    assert.deepEqual(
      offending(
        ({ file, target }) => target === name && !owners.some((owner) => isIn(file, owner)),
      ),
      [],
    );
  });
}

/** What files in a place may import, apart from files in the same place. */
const ALLOWED: readonly {
  readonly places: readonly string[];
  readonly targets: readonly string[];
  /** Whether they may import types of anything. */
  readonly types?: true;
  /** Whether they may import any package. */
  readonly packages?: true;
}[] = [
  {
    // The client is portable: it loads portable modules only.
    places: ['src/client'],
    targets: [
      'src/protocol/answers',
      'src/protocol/api',
      'src/protocol/rows',
      'src/protocol/records',
      'src/base/byte-bounds.ts',
      'src/base/json',
      'src/base/timestamp.ts',
      'src/protocol/refusals.ts',
      'typebox',
      'typebox/value',
      'src/base/crypto/strict-ed25519.ts',
      'src/protocol/heartbeat-session.ts',
      'tweetnacl',
      '@noble/hashes/hmac.js',
      '@noble/hashes/sha2.js',
      '@noble/hashes/utils.js',
    ],
    types: true,
  },
  // No layer calls back up.
  { places: ['src/base/json'], targets: [], packages: true },
  { places: ['src/base/crypto'], targets: ['src/base/json'], packages: true },
  { places: ['src/base/timestamp.ts'], targets: [], packages: true },
  {
    places: ['src/protocol/records'],
    targets: ['src/base/crypto', 'src/base/json', 'src/base/timestamp.ts'],
    packages: true,
  },
  { places: ['src/base/byte-bounds.ts'], targets: [], packages: true },
  { places: ['src/base/named-file.ts'], targets: ['src/base/byte-bounds.ts'], packages: true },
  {
    places: ['src/base/keys'],
    targets: ['src/base/crypto', 'src/base/byte-bounds.ts', 'src/base/named-file.ts'],
    packages: true,
  },
  { places: ['src/base/runtime.ts'], targets: [], packages: true },
  // Routes, views, pages and the client share the schemas of rows and answers.
  { places: ['src/protocol/rows'], targets: ['src/protocol/records', 'typebox'] },
  {
    places: ['src/protocol/answers'],
    targets: ['src/protocol/rows', 'src/protocol/records', 'typebox'],
  },
];

for (const { places, targets, types = false, packages = false } of ALLOWED) {
  test(`${places} imports only ${targets.join(', ') || 'itself'}`, () => {
    const allowed = [...places, ...targets];
    assert.deepEqual(
      offending(
        ({ file, target, isType, isPackage }) =>
          places.some((place) => isIn(file, place)) &&
          !(types && isType) &&
          !(packages && isPackage) &&
          !allowed.some((place) => isIn(target, place)),
      ),
      [],
    );
  });
}

test('the client, and the JSON it uses, import nothing from Node.js', () => {
  const portable = [
    'src/client',
    'src/base/json/parse.ts',
    'src/base/json/write.ts',
    'src/base/json/value.ts',
  ];
  assert.deepEqual(
    offending(
      ({ file, target }) =>
        portable.some((place) => isIn(file, place)) && target.startsWith('node:'),
    ),
    [],
  );
});

test('replay protection is one unit: only it imports its parts', () => {
  const folder = 'src/authority/replay';
  assert.deepEqual(
    offending(
      ({ file, target }) =>
        isIn(target, folder) && target !== `${folder}/replay.ts` && !isIn(file, folder),
    ),
    [],
  );
});

/** Each room of the house, and the rooms that it may import from. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  'src/base': [],
  'src/protocol': ['src/base'],
  machines: ['src/protocol'],
  'src/client': ['src/base', 'src/protocol'],
  'src/console': ['src/base', 'src/protocol', 'src/client', 'src/pages'],
  'src/store': ['src/base', 'src/protocol'],
  'src/pages': ['src/base', 'src/protocol', 'src/build'],
  'src/authority': ['src/base', 'src/protocol', 'src/store', 'machines'],
  'src/maintenance': ['src/base', 'src/protocol', 'src/store', 'src/authority', 'machines'],
  'src/edge': ['src/base', 'src/protocol', 'src/pages'],
  'src/server': [
    'src/base',
    'src/protocol',
    'src/store',
    'src/pages',
    'src/authority',
    'src/maintenance',
    'src/edge',
    'machines',
  ],
  'src/cli': [
    'src/base',
    'src/protocol',
    'src/client',
    'src/console',
    'src/store',
    'src/pages',
    'src/authority',
    'src/maintenance',
    'src/edge',
    'src/server',
    'machines',
  ],
  'src/build': [],
};

test('every file is in a room, and no import between rooms points up', () => {
  const roomOf = (file: string) => Object.keys(ROOMS).find((room) => isIn(file, room));
  assert.deepEqual(
    sources.map(({ file }) => file).filter((file) => roomOf(file) === undefined),
    [],
  );
  assert.deepEqual(
    offending(({ file, target, isPackage }) => {
      const [from = '', to = ''] = [roomOf(file), roomOf(target)];
      return !isPackage && from !== to && ROOMS[from]?.includes(to) !== true;
    }),
    [],
  );
});

test('every room says in ten lines what belongs in it', () => {
  for (const room of Object.keys(ROOMS)) {
    const lines = readFileSync(join(PROJECT_PATH, room, 'README.md'), 'utf8').split('\n');
    assert.ok(lines.length <= 11, room);
  }
});

/**
 * The type of the whole authority names all of its parts, and the handlers of a part take the whole: a part and its
 * handlers could not be in one place otherwise.
 */
function isWholeAuthority({ target, isType }: Import): boolean {
  return isType && target === 'src/authority/authority.ts';
}

test('no folders import each other, directly or indirectly, at any depth', () => {
  const folders = new Set(sources.flatMap(({ file }) => foldersAbove(file)));
  const rings = [...folders].flatMap((folder) => {
    const next = new Map<string, string[]>();
    for (const found of imports) {
      const { file, target, isPackage } = found;
      const [from, to] = [partOf(file, folder), partOf(target, folder)];
      if (isPackage || isWholeAuthority(found) || from === null || to === null || from === to)
        continue;
      next.set(from, [...(next.get(from) ?? []), to]);
    }
    const after = (part: string) => next.get(part) ?? [];
    return [...next.keys()].filter((part) => reachableFrom(after(part), after).has(part));
  });
  assert.deepEqual(rings, []);
});

/** `src/a/b.ts` is below `src/a` and `src`. */
function foldersAbove(file: string): string[] {
  const above = dirname(file);
  return above === '.' ? [] : [above, ...foldersAbove(above)];
}

/** The entry of the folder that contains the file, or is the file; null if the file is elsewhere. */
function partOf(file: string, folder: string): string | null {
  if (!file.startsWith(`${folder}/`)) return null;
  const [part = ''] = file.slice(folder.length + 1).split('/');
  return `${folder}/${part}`;
}

const BROWSER = 'src/pages/browser';

test('browser scripts import only each other, idiomorph and types, and nothing from the server', () => {
  assert.deepEqual(
    offending(
      ({ file, target, isType }) =>
        isIn(file, BROWSER) !== isIn(target, BROWSER) && !isType && target !== 'idiomorph',
    ),
    [],
  );
});

test('only the command line is above boot, and nothing imports main', () => {
  assert.deepEqual(
    offending(({ file, target }) => target === 'src/server/boot.ts' && !isIn(file, 'src/cli')),
    [],
  );
  assert.deepEqual(
    offending(({ target }) => target === 'src/cli/main.ts'),
    [],
  );
});

test('records are portable: signatures and digests are passed in, and nothing of Node.js is used', () => {
  const portable = new Set([
    'src/base/crypto/primitives.ts',
    'typebox',
    'typebox/compile',
    'typebox/format',
  ]);
  const places = ['src/protocol/records', 'src/base/json', 'src/base/timestamp.ts'];
  const ofNode = new Set(['src/base/json/bytes.ts']);
  const isPortable = (file: string) =>
    !ofNode.has(file) && (portable.has(file) || places.some((place) => isIn(file, place)));
  assert.deepEqual(
    offending(({ file, target }) => isPortable(file) && !isPortable(target)),
    [],
  );
  const usesNode = sources.filter(
    ({ file, code }) => isPortable(file) && /\b(Buffer|process)\b/.test(code),
  );
  assert.deepEqual(
    usesNode.map(({ file }) => file),
    [],
  );
});

test('the client and the other commands do not load the server', () => {
  const server = ['uWebSockets.js', 'lmdb', 'pg', 'sodium-native'];
  const loaded = reachableFrom(filesBelow('src/client'));
  const native = imports.filter(
    (i) => !i.isType && loaded.has(i.file) && server.includes(i.target),
  );
  assert.deepEqual(native, []);
});

test('wall clock, monotonic clock and randomness are read in one file, except for the client’s defaults', () => {
  const sourcesOfChance = [
    /\bDate\.now\b/,
    /\bnew Date\(\s*\)/,
    /\bDate\(\s*\)/,
    /\bMath\.random\b/,
    /\bperformance\b/,
    /\bhrtime\b/,
    /\brandomUUID\b/,
    /\bgetRandomValues\b/,
    /(?<!\.)\brandomBytes\b/,
    /\bcrypto\.(random|getRandom)/,
    /\brandomInt\b/,
  ];
  const allowed = ['src/base/runtime.ts', 'src/client', BROWSER];
  const found = sources.flatMap(({ file, code }) =>
    allowed.some((place) => isIn(file, place))
      ? []
      : sourcesOfChance.filter((source) => source.test(code)).map((source) => `${file} ${source}`),
  );
  assert.deepEqual(found, []);
});

test('the environment is read only where the command line starts the service or names its store, and for colors', () => {
  const readers = sources
    .filter(({ code }) => /\bprocess\.env\b/.test(code))
    .map(({ file }) => file);
  assert.deepEqual(readers, [
    'src/cli/kernel/output.ts',
    'src/cli/service/serve-authority.ts',
    'src/cli/state/place.ts',
  ]);
});

test('only the command line ends the process', () => {
  const enders = sources
    .filter(({ code }) => /\bprocess\.exit\b/.test(code))
    .map(({ file }) => file);
  assert.deepEqual(
    enders.filter((file) => file !== 'src/cli/main.ts' && !isIn(file, 'src/cli')),
    [],
  );
});

test('nothing is loaded while requests are served, when there may be no file descriptor left', () => {
  assert.deepEqual(
    offending(({ file, isDeferred, isType }) => isDeferred && !isType && !isIn(file, 'src/cli')),
    [],
  );
});

test('no two files import each other, directly or indirectly, including types', () => {
  const targets = new Map(sources.map(({ file }) => [file, [] as string[]]));
  for (const found of imports) {
    if (found.isPackage || found.isDeferred || isWholeAuthority(found)) continue;
    targets.get(found.file)?.push(found.target);
  }
  const next = (file: string) => targets.get(file) ?? [];
  const files = sources.map(({ file }) => file);
  assert.deepEqual(
    files.filter((file) => reachableFrom(next(file), next).has(file)),
    [],
  );
});

test('tests, which run compiled, find files of the project through one module', () => {
  const byOwnPlace = /(?<!createRequire\()\bimport\.meta\.(?:url|dirname|filename)\b/;
  // The build replaces it with the location of the compiled file.
  const allowed = ['test/build.ts', 'test/run.ts', 'test/support/project.ts'];
  const found = filesBelow('test').filter(
    (file) =>
      byOwnPlace.test(withoutComments(readFileSync(join(PROJECT_PATH, file), 'utf8'))) &&
      !allowed.includes(file),
  );
  assert.deepEqual(found, []);
});

/** The project's own files that are imported at run time. */
function usedBy(file: string): string[] {
  const own = imports.filter((found) => !found.isType && !found.isPackage);
  return own.filter((found) => found.file === file).map(({ target }) => target);
}

/** The given files and everything that they import. */
function reachableFrom(starts: readonly string[], next = usedBy): Set<string> {
  const reached = new Set<string>();
  const waiting = [...starts];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    waiting.push(...next(file));
  }
  return reached;
}

function filesBelow(folder: string): string[] {
  return readdirSync(join(PROJECT_PATH, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /(?<!\.d)\.c?[jt]s$/.test(entry.name))
    .map((entry) => relative(PROJECT_PATH, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
}

/** The code without comments; strings are kept, because import paths are strings. */
function withoutComments(code: string): string {
  const piece =
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;
  return code.replace(piece, (match) => (match.startsWith('/') ? ' ' : match));
}

function importsOf(file: string, code: string): Import[] {
  const [statements] = parse(code, file);
  const found = statements.flatMap((statement) => {
    if (!('specifier' in statement) || !statement.specifier) return [];
    const { specifier, importStart, importEnd, type } = statement;
    const isDeferred = type === 'dynamic';
    const before = code.slice(0, importStart);
    const isType = isDeferred
      ? /typeof\s+$/.test(before)
      : isTypeImport(code.slice(importStart, importEnd));
    return [importOf(file, specifier, isType, isDeferred)];
  });
  const required = /\b(?:require|createRequire\([^)]*\))\(\s*'([^']+)'\s*\)/g;
  for (const [, specifier = ''] of code.matchAll(required)) {
    found.push(importOf(file, specifier, false, false));
  }
  return found;
}

function importOf(file: string, specifier: string, isType: boolean, isDeferred: boolean): Import {
  const isPackage = !specifier.startsWith('.');
  const target = isPackage ? specifier : posix.join(dirname(file), specifier);
  return { file, target, isPackage, isType, isDeferred };
}

/** `import type`, or `{ type A, type B }` in which every name is a type and nothing is outside the braces. */
function isTypeImport(statement: string): boolean {
  if (/^(?:import|export)\s+type\b/.test(statement)) return true;
  const braces = /^(?:import|export)\s*\{([^}]*)\}\s*from\b/.exec(statement);
  if (braces === null) return false;
  const names = (braces[1] ?? '').split(',').map((name) => name.trim());
  return names.filter((name) => name !== '').every((name) => name.startsWith('type '));
}

/** Whether a path is the given place or below it. */
function isIn(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}

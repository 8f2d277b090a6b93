/**
 * Runs the tests from the compiled tree, or only the named ones; with `--deep`, the long ones, in files named
 * `*.deep.test.ts`; with `MESH_TEST_THREADS` or `MESH_TEST_STORE`, only those that threads or the store can affect; with
 * `--newest`, only those that a newer Node.js can affect.
 * `tsx --test FILE` runs a single file from its source.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { shareCluster } from './support/empty-stores.ts';
import { IMPORTS_FILE, type Imports, STARTS_AUTHORITY } from './support/imports.ts';
import { makeRelease } from './support/released.ts';
import { scratchParent } from './support/scratch.ts';
import { sourcePlace, withSourcePlaces } from './support/source-places.ts';

/** Far longer than any file or group takes; it ends those that hang. */
const FILE_TIMEOUT_MS = 20 * 60_000;

const SHOWN_FILES = 20;

const TESTS = import.meta.dirname;
const BUILD = resolve(TESTS, '..');
const PROJECT = resolve(BUILD, '..');
const BROWSER = 'test/support/browser.ts';
const PROCESSES = 'test/support/processes.ts';
const RELEASED = 'test/support/released.ts';
const SHARED_CLUSTER = 'test/support/shared-cluster.ts';

/**
 * How many files share a process: loading the modules and warming them up takes half of a process's time. Fewer of those
 * that start programs or a browser, because they take longer. Those with an authority in their process have modules of
 * their own.
 */
const GROUP_FILES = { browsing: 3, starting: 5, serving: 16, computing: 16, measuring: 16 };
type Kind = keyof typeof GROUP_FILES;
/** The kinds that start no program. */
const QUIET: readonly Kind[] = ['serving', 'computing', 'measuring'];
/** Code in tests that changes, or measures the memory of, a process. */
const ALONE = /\b(?:memoryUsage|mock\.timers)\b|\bprocess\.env\.\w+ = /;
/** Code in tests that measures the time of a processor. */
const MEASURES = /\bcpuUsage\b|support\/cpu\.ts/;

/**
 * What runs once more with `MESH_TEST_THREADS`, by what differs if HTTP is on other threads than the authority. What
 * the authority decides does not, so files about one subject are not among them.
 */
const THREADED = {
  // Commands, answers, publications and log lines are messages.
  messages: ['logs', 'openapi', 'repeated-requests', 'roster', 'threads', 'trust-protocol'],
  // Each thread has the documents, lists and events in its own memory, or shares it with the authority.
  documents: [
    'adoption',
    'certificate-list',
    'contacts',
    'crl',
    'documents',
    'events',
    'history',
    'horizon',
    'large-bodies',
    'public-lists',
    'publication',
    'published-graph',
    'revocation-list-delta',
    'revocations',
  ],
  // Each thread checks proofs with its own copies of keys, sessions and clocks.
  proofs: [
    'heartbeat-sessions',
    'key-compromise',
    'operator-auth',
    'operator-keys',
    'proofs',
    'replay',
    'succession',
    'wrong-clocks',
  ],
  // Threads count connections, bytes, refusals and requests together.
  limits: ['audit', 'body-bounds', 'envelope', 'http-connections', 'rate-limits'],
};

/**
 * What runs once more with `MESH_TEST_STORE=postgresql`, by what it needs of the store. A store does not know what a
 * subject means, so one file for each kind of subject would repeat the same statements.
 */
const STORED = {
  // Each route stores, removes or reads once, and what was stored is the same after a restart.
  restarts: [
    'certificates',
    'contacts',
    'horizon',
    'invites',
    'nullifier-restart.deep',
    'openapi',
    'trust-restart',
  ],
  // Units with many subjects, removals, spent nonces, kept answers, and times of heartbeats.
  units: [
    'heartbeat-sessions',
    'invite-batches',
    'repeated-requests',
    'replay',
    'retention',
    'revocations',
  ],
  // The audit log and the history are read from the store.
  logs: ['audit', 'history'],
  // Lists whose versions are stored.
  lists: ['publication', 'revocation-list-delta'],
  // Keys are in files, and which of them count is in the store.
  keys: ['authority-keys', 'succession', 'succession-files'],
  // The state as a whole.
  states: ['backup', 'restore'],
};

/** What runs once more with `--newest`, by what of Node.js it needs: most of it is the same in every version. */
const NEWEST = {
  // LMDB is a native module, and the client of PostgreSQL uses sockets and timers.
  store: [
    'backup',
    'data-folder',
    'failing-disk',
    'lmdb',
    'postgresql',
    'postgresql-lease',
    'postgresql-locks.deep',
    'postgresql-standby-reader',
    'postgresql-start',
    'restore',
    'store-move.deep',
  ],
  // uWebSockets.js has a native module for each version.
  edge: [
    'body-bounds',
    'documents',
    'envelope',
    'events',
    'http-connections',
    'http-head',
    'large-bodies',
    'live',
    'rate-limits',
    'request-queue',
    'threads',
    'tls',
  ],
  start: ['first-use', 'init', 'refused-programs', 'serve', 'start.deep'],
  signals: ['failures.deep', 'signals.deep', 'stopping'],
  packages: ['native-parts.deep', 'packages', 'runtime'],
};

interface Counted {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly details: { readonly duration_ms: number };
}

const imports: Imports = JSON.parse(readFileSync(join(BUILD, IMPORTS_FILE), 'utf8'));
const { MESH_TEST_THREADS, MESH_TEST_STORE } = process.env;
const { values, positionals } = parseArgs({
  options: {
    deep: { type: 'boolean', default: false },
    newest: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const tests = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.test.js'),
);
const again = {
  threads: new Set(Object.values(THREADED).flat()),
  store: new Set(Object.values(STORED).flat()),
  newest: new Set(Object.values(NEWEST).flat()),
};
// An outdated name in these lists would have no effect.
const known = new Set(tests.map((path) => basename(path, '.test.js')));
for (const name of [...again.threads, ...again.store, ...again.newest, ...positionals]) {
  if (!known.has(name)) throw new Error(`There is no test file named ${name}`);
}
const files = tests
  .filter(isChosen)
  .map((path) => join(TESTS, path))
  .sort();
const isGrouped = positionals.length === 0 && !values.deep;
const shared = isGrouped ? files.filter(sharesProcess) : [];

function isChosen(path: string): boolean {
  const name = basename(path, '.test.js');
  if (positionals.length > 0) return positionals.includes(name);
  if (values.newest) return again.newest.has(name);
  if (MESH_TEST_THREADS !== undefined) return again.threads.has(name);
  if (MESH_TEST_STORE !== undefined) return again.store.has(name);
  return name.endsWith('.deep') === values.deep;
}

// Removing this folder also removes what killed tests leave behind.
const scratch = mkdtempSync(join(scratchParent(), 'mesh-na-tests-'));
// Servers that run as other users have folders in it.
chmodSync(scratch, 0o711);
process.env.TMPDIR = scratch;
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
if (MESH_TEST_STORE === 'postgresql' || files.some((file) => modulesOf(file).has(SHARED_CLUSTER))) {
  await shareCluster();
}
if (files.some((file) => modulesOf(file).has(RELEASED))) {
  process.env.MESH_TEST_RELEASE = makeRelease();
}
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());

/**
 * More than there are cores, because files spend a third of their time waiting for processes, pages and disks, and deep
 * ones two thirds.
 */
const concurrency = values.deep ? 3 * availableParallelism() : availableParallelism() + 2;
const took = new Map<string, number>();
const longest = groupsOf('browsing');
const computing = QUIET.flatMap(groupsOf);
const waitingGroups = groupsOf('starting');
const groups = [...longest, ...computing, ...waitingGroups];
const alone = files.filter((file) => !shared.includes(file));
const quiet = alone.filter((file) => QUIET.includes(kindOf(file)));
const waiting = [...waitingGroups, ...alone.filter((file) => !quiet.includes(file))];
run({
  // The longest first, and the shortest last, so that the run does not end with a single busy core. Of the deep tests,
  // those that start no program are the longest.
  files: [
    ...longest,
    ...inTurns(values.deep ? quiet : computing, waiting),
    ...(values.deep ? [] : quiet),
  ],
  concurrency,
  timeout: FILE_TIMEOUT_MS,
  signal: stop.signal,
})
  .on('test:pass', count)
  .on('test:fail', (failed) => {
    process.exitCode = 1;
    count(failed);
  })
  .compose(new spec())
  .compose(withSourcePlaces)
  .on('end', () => process.stdout.write(slowest()))
  .pipe(process.stdout, { end: false });

/** Counts only top-level tests; those of a group are its files. */
function count({ name, nesting, file = '', line = 1, column = 1, details }: Counted): void {
  if (nesting > 0) return;
  const counted = groups.includes(file)
    ? name
    : relative(PROJECT, sourcePlace(file, line, column)?.file ?? file);
  took.set(counted, (took.get(counted) ?? 0) + details.duration_ms);
}

/** The time for the whole run is limited, so the run says where it went. */
function slowest(): string {
  const files = [...took].sort(([, one], [, other]) => other - one).slice(0, SHOWN_FILES);
  const lines = files.map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${file}\n`);
  return `\nThe files that took longest:\n${lines.join('')}`;
}

function kindOf(file: string): Kind {
  const modules = modulesOf(file);
  if (modules.has(BROWSER)) return 'browsing';
  if (modules.has(PROCESSES)) return 'starting';
  const text = textOf(file);
  if (MEASURES.test(text)) return 'measuring';
  return STARTS_AUTHORITY.test(text) ? 'serving' : 'computing';
}

function sharesProcess(file: string): boolean {
  return !ALONE.test(textOf(file));
}

function textOf(file: string): string {
  return readFileSync(join(PROJECT, sourceOf(file)), 'utf8');
}

/** Those that compute and those that wait alternate, so that they run at the same time. */
function inTurns(computing: readonly string[], waiting: readonly string[]): string[] {
  const pairs = waiting.flatMap((file, index) => [...computing.slice(index, index + 1), file]);
  return [...pairs, ...computing.slice(waiting.length)];
}

/** The files of groups. Neighbors are alike, so each goes to another group. */
function groupsOf(kind: Kind): string[] {
  const members = shared.filter((file) => kindOf(file) === kind);
  const count = Math.ceil(members.length / GROUP_FILES[kind]);
  return Array.from({ length: count }, (_, group) =>
    writeGroup(
      `${kind}-${group + 1}`,
      members.filter((_, index) => index % count === group),
    ),
  );
}

/** The file of a group runs its members one after another, each in a suite, to which its hooks belong. */
function writeGroup(name: string, members: readonly string[]): string {
  const path = join(scratch, `${name}.test.mjs`);
  writeFileSync(
    path,
    `import { suite } from 'node:test';
for (const [name, file] of ${JSON.stringify(members.map((file) => [sourceOf(file), file]))}) {
  await suite(name, () => import(file));
}
`,
  );
  return path;
}

function sourceOf(file: string): string {
  return relative(BUILD, file).replace(/\.js$/, '.ts');
}

/** The source of a compiled file and all own modules that it imports. */
function modulesOf(file: string): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting = [sourceOf(file)];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    waiting.push(...(imports[next] ?? []));
  }
  return reached;
}

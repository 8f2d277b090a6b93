/**
 * Runs the tests from the compiled tree, or only the named ones; with `--deep`, the long ones, in files named
 * `*.deep.test.ts`; with `MESH_TEST_THREADS` or `MESH_TEST_STORE`, only those that threads or the store can affect.
 * `tsx --test FILE` runs a single file from its source.
 */
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { shareCluster } from './support/empty-stores.ts';
import { IMPORTS_FILE, type Imports } from './support/imports.ts';
import { sourcePlace, withSourcePlaces } from './support/source-places.ts';

/** Far longer than any file or group takes; it ends those that hang. */
const FILE_TIMEOUT_MS = 20 * 60_000;

const SHOWN_FILES = 20;

const SHARED_MEMORY = '/dev/shm';
/** A multiple of what all concurrent tests need. */
const SCRATCH_BYTES = 4 * 1024 ** 3;

const TESTS = import.meta.dirname;
const BUILD = resolve(TESTS, '..');
const PROJECT = resolve(BUILD, '..');
const AUTHORITY = 'test/support/authority.ts';
const BROWSER = 'test/support/browser.ts';
const LMDB_ONLY = 'test/support/lmdb-only.ts';
const PROCESSES = 'test/support/processes.ts';

/** How many files share a process: loading the modules and warming them up takes half of a process's time. */
const GROUP_FILES = 12;
/** Fewer of those that start a browser, because they take longer. */
const BROWSER_GROUP_FILES = 3;
/** Code in tests that changes or measures something that a process has only once. */
const ALONE =
  /\b(?:cpuUsage|memoryUsage|mock\.timers)\b|\bprocess\.env\.\w+ = |support\/(?:thread-)?cpu\.ts/;

/** They start an authority, but neither threads nor the store affect them, or they bring their own store. */
const UNAFFECTED =
  /^(?:cli|client|golden-trust|postgresql|trust-(?:evaluation|explanations|records))\b/;
const UNAFFECTED_NAMES = new Set([
  'altered-records',
  'deploy',
  'first-use',
  'fleet-succession',
  'key-file',
  'lists',
  'native-parts',
  'node-agent',
  'openapi',
  'recognition-policy',
  'recognition-verification',
  'refused-programs',
  'route-table',
  'rows',
  'server-name',
  'signer',
  'ssh-agent',
  'third-party-vectors',
  'tls',
  'verification-cost',
  'worst-bodies',
]);

/** They test what happens before the authority is called, or records that are not stored. */
const UNAFFECTED_BY_STORE = new Set([
  'agreement-acceptance',
  'agreement-verification',
  'agreements',
  'body-bounds',
  'boundary',
  'boundary-verification',
  'consensus',
  'consensus-keys',
  'consensus-verification',
  'data-usage',
  'envelope',
  'http-connections',
  'http-head',
  'large-bodies',
  'logs',
  'node-auth',
  'operator-auth',
  'peers',
  'proof-bytes',
  'rate-limits',
  'stopping',
  'text-bounds',
  'threads',
  'trust-evidence',
  'trust-protocol',
  'usable-offers',
]);

/**
 * They test what the authority does on its own thread, regardless of the number of others, or single routes of the
 * trust protocol, each of which `trust-protocol` also runs through a thread.
 */
const UNAFFECTED_BY_THREADS = new Set([
  'agreement-acceptance',
  'agreement-verification',
  'agreements',
  'backup',
  'boundary',
  'boundary-verification',
  'consensus',
  'consensus-keys',
  'consensus-verification',
  'data-usage',
  'disclosure',
  'disclosure-verification',
  'doctor',
  'heads',
  'lapses',
  'restore',
  'retention',
  'scheduled-backups',
  'trust-evidence',
  'usable-offers',
]);

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
  options: { deep: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const tests = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.test.js'),
);
// An outdated name in these lists would have no effect.
const known = new Set(tests.map((path) => basename(path, '.test.js')));
for (const name of [
  ...UNAFFECTED_NAMES,
  ...UNAFFECTED_BY_STORE,
  ...UNAFFECTED_BY_THREADS,
  ...positionals,
]) {
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
  if (name.endsWith('.deep') !== values.deep) return false;
  if (MESH_TEST_THREADS === undefined && MESH_TEST_STORE === undefined) return true;
  const modules = modulesOf(join(TESTS, path));
  // Browsers would see the same pages, and take a quarter of the time.
  if (!modules.has(AUTHORITY) || modules.has(BROWSER)) return false;
  if (UNAFFECTED.test(name) || UNAFFECTED_NAMES.has(name)) return false;
  if (MESH_TEST_STORE === undefined) return !UNAFFECTED_BY_THREADS.has(name);
  return !modules.has(LMDB_ONLY) && !UNAFFECTED_BY_STORE.has(name);
}

// Removing this folder also removes what killed tests leave behind.
const scratch = mkdtempSync(join(scratchParent(), 'mesh-na-tests-'));
// Servers that run as other users have folders in it.
chmodSync(scratch, 0o711);
process.env.TMPDIR = scratch;
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
if (MESH_TEST_STORE === 'postgresql') await shareCluster();
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());

/** More than there are cores, because files spend a third of their time waiting for processes, pages and disks. */
const concurrency = availableParallelism() + 2;
const took = new Map<string, number>();
const browsing = shared.filter(usesBrowser);
const longest = groupsOf(browsing, BROWSER_GROUP_FILES);
const computing = groupsOf(
  shared.filter((file) => !browsing.includes(file)),
  GROUP_FILES,
);
const groups = [...longest, ...computing].map(writeGroup);
const alone = files.filter((file) => !shared.includes(file));
const waiting = alone.filter((file) => usesBrowser(file) || startsPrograms(file));
run({
  // The longest first, and the shortest last, so that the run does not end with a single busy core.
  files: [
    ...groups.slice(0, longest.length),
    ...inTurns(groups.slice(longest.length), waiting),
    ...alone.filter((file) => !waiting.includes(file)),
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

/** In memory if there is room, because on a disk, creating and removing folders takes most of a test's time. */
function scratchParent(): string {
  try {
    const { bavail, bsize } = statfsSync(SHARED_MEMORY);
    if (bavail * bsize >= SCRATCH_BYTES) return SHARED_MEMORY;
  } catch {
    // Only Linux has it.
  }
  return tmpdir();
}

function usesBrowser(file: string): boolean {
  return modulesOf(file).has(BROWSER);
}

function startsPrograms(file: string): boolean {
  return modulesOf(file).has(PROCESSES);
}

/** Those that only start programs do not: they mostly wait for them, and sharing would save little. */
function sharesProcess(file: string): boolean {
  if (startsPrograms(file) && !usesBrowser(file)) return false;
  return !ALONE.test(readFileSync(join(PROJECT, sourceOf(file)), 'utf8'));
}

/** Those that compute and those that wait alternate, so that they run at the same time. */
function inTurns(computing: readonly string[], waiting: readonly string[]): string[] {
  const pairs = waiting.flatMap((file, index) => [...computing.slice(index, index + 1), file]);
  return [...pairs, ...computing.slice(waiting.length)];
}

/** Neighbors are alike, so each goes to another group. */
function groupsOf(files: readonly string[], size: number): string[][] {
  const count = Math.ceil(files.length / size);
  return Array.from({ length: count }, (_, group) =>
    files.filter((_, index) => index % count === group),
  );
}

/** The file of a group runs its members one after another, each in a suite, to which its hooks belong. */
function writeGroup(members: readonly string[], index: number): string {
  const path = join(scratch, `group-${index + 1}.test.mjs`);
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

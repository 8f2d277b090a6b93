/**
 * `npx tsx test/mutations.ts --count 300 --seed 1 [--room authority] [--tests 5]`: makes small mistakes in the sources,
 * one at a time, and says which of the tests near each one fails. `--at src/store/batch.ts:12` tries all mutations of
 * a line instead. The sources are changed in a copy only, which is removed at the end.
 *
 * Of the test files that import a file in any number of steps, the nearest share the most words with its path, then need
 * the fewest steps, then load the fewest modules: most import the whole server, so steps alone say little. As many as
 * `--tests` says run, those with the fewest modules first, until one fails or takes too long. Deep tests do not run, and
 * neither does `tsc`: a mutation that it would refuse is caught only if a test fails.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import * as ast from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import { randomFrom } from './fuzz/random.ts';
import { type Imports, ownImports } from './support/imports.ts';
import { spawnNode } from './support/processes.ts';
import { LOADER, PROJECT_PATH } from './support/project.ts';
import { scratchFolder, scratchParent } from './support/scratch.ts';

const ROOMS = ['machines', 'src/authority', 'src/edge', 'src/protocol', 'src/store'];
const NOT_COPIED = ['.git', 'node_modules', 'build', 'dist'];

const OPPOSITES: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
};

/** In paths; the words are in the singular. */
const BETWEEN_WORDS = /s?[^a-z0-9]+/;

/** Longer than the slowest test file that is near anything takes on a busy machine. */
const LIMIT_MS = 120_000;

interface Mutation {
  /** Relative to the project. */
  readonly file: string;
  readonly line: number;
  readonly start: number;
  readonly before: string;
  readonly after: string;
}

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    room: { type: 'string' },
    tests: { type: 'string', default: '5' },
    at: { type: 'string', multiple: true },
  },
});
const rooms = ROOMS.filter((room) => values.room === undefined || basename(room) === values.room);
if (rooms.length === 0) throw new Error(`There is no room ${values.room} in ${ROOMS.join(', ')}`);

/** The process group of the test file that runs. */
let group: number | null = null;
const scratch = scratchFolder('mesh-na-mutations-', { below: scratchParent(), atExit: endRun });
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
// Servers that run as other users have folders in it.
chmodSync(scratch.path, 0o711);
const tree = join(scratch.path, 'tree');
cpSync(PROJECT_PATH, tree, {
  recursive: true,
  filter: (path) => !NOT_COPIED.includes(relative(PROJECT_PATH, path)),
});
symlinkSync(join(PROJECT_PATH, 'node_modules'), join(tree, 'node_modules'));

const reachedBy = await modulesReached();
/** Whether each test file that failed with a mutation passes without one. */
const sound = new Map<string, boolean>();

const chosen = choose(allMutations());
print(`seed ${values.seed}, ${chosen.length} mutations`);
const caught = new Set<Mutation>();
for (const mutation of chosen) {
  const caughtBy = await testThatCatches(mutation);
  if (caughtBy !== null) caught.add(mutation);
  const verdict = caughtBy === null ? 'NOT CAUGHT' : `caught by ${caughtBy}`;
  const change = `${mutation.before} → ${mutation.after}`.replace(/\s+/g, ' ');
  print(`${verdict}  ${mutation.file}:${mutation.line}  ${change}`);
}
for (const room of rooms) {
  const ofRoom = chosen.filter(({ file }) => file.startsWith(`${room}/`));
  const count = ofRoom.filter((mutation) => caught.has(mutation)).length;
  print(`${room.padEnd(14)} ${count} of ${ofRoom.length} caught`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The mutations of the given lines, or as many as asked for, in random order. */
function choose(all: readonly Mutation[]): readonly Mutation[] {
  const { at } = values;
  if (at !== undefined) return all.filter(({ file, line }) => at.includes(`${file}:${line}`));
  const random = randomFrom(Number(values.seed));
  const ranked = all.map((mutation) => ({ mutation, rank: random.next() }));
  return ranked
    .sort((one, other) => one.rank - other.rank)
    .slice(0, Number(values.count))
    .map(({ mutation }) => mutation);
}

/** In the order of the files and of the places in them, so that a seed always chooses the same ones. */
function allMutations(): Mutation[] {
  const api = new API({ cwd: tree });
  const [project] = api.updateSnapshot({ openProject: join(tree, 'tsconfig.json') }).getProjects();
  const found = (project?.program.getSourceFileNames() ?? [])
    .filter((path) => rooms.some((room) => path.startsWith(join(tree, room, '/'))))
    .sort()
    .map((path) => project?.program.getSourceFile(path))
    .flatMap((source) => (source === undefined ? [] : mutationsIn(source)));
  api.close();
  return found;
}

function mutationsIn(source: ast.SourceFile): Mutation[] {
  const found: Mutation[] = [];
  const textOf = (node: ast.Node) => node.getText(source);
  function add(node: ast.Node, after: string, end = node.end): void {
    const start = node.getStart(source);
    const line = source.getLineAndCharacterOfPosition(start).line + 1;
    const before = source.text.slice(start, end);
    const file = relative(tree, source.fileName);
    if (after !== before) found.push({ file, line, start, before, after });
  }
  function visit(node: ast.Node): void {
    if (ast.isIfStatement(node) && node.elseStatement === undefined) {
      add(node.expression, `!(${textOf(node.expression)})`);
      add(node.expression, 'false');
    }
    const isGuard = ast.isPropertyAssignment(node) && textOf(node.name) === 'guard';
    if (isGuard) add(node.initializer, '() => true');
    if (ast.isBinaryExpression(node)) {
      const opposite = OPPOSITES[textOf(node.operatorToken)];
      if (opposite) add(node, `(${textOf(node.left)} ${opposite} ${textOf(node.right)})`);
    }
    if (ast.isNumericLiteral(node) && !ast.isLiteralTypeNode(node.parent)) {
      add(node, String(Number(textOf(node).replaceAll('_', '')) + 1));
    }
    if (ast.isBlock(node)) {
      for (const [index, first] of node.statements.entries()) {
        const second = node.statements[index + 1];
        if (second === undefined || ![first, second].every(ast.isExpressionStatement)) continue;
        add(first, `${textOf(second)}\n${textOf(first)}`, second.end);
      }
    }
    node.forEachChild(visit);
  }
  visit(source);
  return found;
}

/** The first test file near the mutation that passes without it and fails with it, or null. */
async function testThatCatches({ file, start, before, after }: Mutation): Promise<string | null> {
  const path = join(tree, file);
  const original = readFileSync(path, 'utf8');
  const mutated = original.slice(0, start) + after + original.slice(start + before.length);
  for (const testFile of testsNear(file)) {
    writeFileSync(path, mutated);
    const passes = await runs(testFile);
    writeFileSync(path, original);
    if (passes) continue;
    if (!sound.has(testFile)) sound.set(testFile, await runs(testFile));
    if (sound.get(testFile)) return testFile;
  }
  return null;
}

/** True if the test file passes in time. Everything that it started is ended. */
async function runs(testFile: string): Promise<boolean> {
  const child = spawnNode([...LOADER, join(tree, testFile)], {
    cwd: tree,
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, TMPDIR: scratch.path },
  });
  group = child.pid ?? null;
  const timer = setTimeout(endRun, LIMIT_MS);
  const [code] = await once(child, 'exit');
  clearTimeout(timer);
  endRun();
  return code === 0;
}

function endRun(): void {
  try {
    if (group !== null) process.kill(-group, 'SIGKILL');
  } catch {
    // All its processes have ended.
  }
  group = null;
}

function testsNear(file: string): string[] {
  const words = file.replace(/^(?:src\/)?\w+\//, '').split(BETWEEN_WORDS);
  const near = [...reachedBy].flatMap(([testFile, reached]) => {
    const distance = reached.get(file);
    const named = basename(testFile).split(BETWEEN_WORDS);
    const likeness = named.filter((word) => words.includes(word)).length;
    return distance === undefined ? [] : { testFile, distance, likeness, modules: reached.size };
  });
  return near
    .sort((a, b) => b.likeness - a.likeness || a.distance - b.distance || a.modules - b.modules)
    .slice(0, Number(values.tests))
    .sort((a, b) => a.modules - b.modules)
    .map(({ testFile }) => testFile);
}

/** For each test file, the modules that it loads, with the number of imports that lead to each. */
async function modulesReached(): Promise<ReadonlyMap<string, ReadonlyMap<string, number>>> {
  const testFiles = readdirSync(join(tree, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts') && !path.endsWith('.deep.test.ts'))
    .map((path) => join('test', path));
  const { metafile } = await build({
    absWorkingDir: tree,
    entryPoints: testFiles,
    outdir: scratch.path,
    write: false,
    metafile: true,
    bundle: true,
    splitting: true,
    packages: 'external',
    format: 'esm',
  });
  const imports = ownImports(metafile);
  return new Map(testFiles.map((testFile) => [testFile, distancesFrom(testFile, imports)]));
}

function distancesFrom(file: string, imports: Imports): ReadonlyMap<string, number> {
  const distances = new Map([[file, 0]]);
  for (const [reached, distance] of distances) {
    for (const next of imports[reached] ?? []) {
      if (!distances.has(next)) distances.set(next, distance + 1);
    }
  }
  return distances;
}

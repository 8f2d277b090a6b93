/**
 * `npx tsx test/mutations.ts --count 300 --seed 1 [--room authority] [--tests 12]`: makes small mistakes in the sources,
 * and says for each which test file fails with it. `--at src/store/batch.ts:12` tries all mutations of a line instead.
 * It works in a copy of the project, which is removed at the end.
 *
 * The copy is compiled once, with all mutations in it: a variable of the environment says which of them takes effect.
 * First every test file runs without one, and notes which mutations it reaches; files that fail then, such as those that
 * read the sources, do not count. Then, of the files that reach a mutation, as many as `--tests` says run with it, until
 * one fails or takes too long: those first whose names are most like that of the mutated file, then those that reach the
 * fewest others. Deep tests do not run, and neither does `tsc`: a mutation that it would refuse is caught only if a test
 * fails.
 */
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import * as ast from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import { randomFrom } from './fuzz/random.ts';
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

/** Longer than any test file takes. */
const LIMIT_MS = 300_000;
/** Added to what a test file takes without a mutation, twice: longer than a busy machine delays it. */
const PATIENCE_MS = 30_000;

/**
 * Precedes the compiled code. `mutated` says whether a mutation takes effect, and notes that it was reached: in a file
 * named after the test file, which processes and threads that it starts find in their environment.
 */
const SWITCH = `globalThis.mutated ??= (({ MUTATION, MUTATIONS_REACHED }) => {
  const reached = new Set();
  return (number) => {
    if (MUTATIONS_REACHED !== undefined && !reached.has(number)) {
      reached.add(number);
      require('node:fs').appendFileSync(MUTATIONS_REACHED, number + ' ');
    }
    return number === Number(MUTATION);
  };
})(process.env);`.replaceAll(/\n */g, ' ');

interface Mutation {
  /** Relative to the project. */
  readonly file: string;
  readonly line: number;
  readonly start: number;
  readonly before: string;
  readonly after: string;
  /** Whether it replaces statements, not an expression. */
  readonly isStatements: boolean;
}

/** A test file that passes without a mutation. */
interface SoundTest {
  readonly path: string;
  readonly ms: number;
  readonly reached: ReadonlySet<number>;
}

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    room: { type: 'string' },
    tests: { type: 'string', default: '12' },
    at: { type: 'string', multiple: true },
  },
});
const rooms = ROOMS.filter((room) => values.room === undefined || basename(room) === values.room);
if (rooms.length === 0) throw new Error(`There is no room ${values.room} in ${ROOMS.join(', ')}`);

/** The process groups of the test files that run. */
const groups = new Set<number>();
const scratch = scratchFolder('mesh-na-mutations-', {
  below: scratchParent(),
  atExit: () => groups.forEach(endGroup),
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
// Servers that run as other users have folders in it.
chmodSync(scratch.path, 0o711);
const tree = join(scratch.path, 'tree');
cpSync(PROJECT_PATH, tree, {
  recursive: true,
  filter: (path) => !NOT_COPIED.includes(relative(PROJECT_PATH, path)),
});
symlinkSync(join(PROJECT_PATH, 'node_modules'), join(tree, 'node_modules'));

const chosen = choose(allMutations());
print(`seed ${values.seed}, ${chosen.length} mutations`);
compile();
const sound: SoundTest[] = [];
await concurrently(testFiles(), async (path) => {
  const found = await soundTest(path);
  if (found !== null) sound.push(found);
});
print(`${sound.length} of ${testFiles().length} test files pass without a mutation`);
const caught = new Set<Mutation>();
await concurrently([...chosen.keys()], async (number) => {
  const mutation = chosen[number] as Mutation;
  const likeness = likenessTo(mutation.file);
  const reaching = sound
    .filter(({ reached }) => reached.has(number))
    .sort(
      (one, other) =>
        likeness(other.path) - likeness(one.path) || one.reached.size - other.reached.size,
    );
  const caughtBy = await testThatCatches(number, reaching.slice(0, Number(values.tests)));
  if (caughtBy !== null) caught.add(mutation);
  const verdict = caughtBy === null ? 'NOT CAUGHT' : `caught by ${caughtBy}`;
  const change = `${mutation.before} → ${mutation.after}`.replace(/\s+/g, ' ');
  const reach = `${reaching.length} reach it`;
  print(`${verdict}  ${mutation.file}:${mutation.line}  ${change}  (${reach})`);
});
for (const room of rooms) {
  const ofRoom = chosen.filter(({ file }) => file.startsWith(`${room}/`));
  const count = ofRoom.filter((mutation) => caught.has(mutation)).length;
  print(`${room.padEnd(14)} ${count} of ${ofRoom.length} caught`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** How many words a path has in common with that of a source: most tests reach much more than they are about. */
function likenessTo(file: string): (path: string) => number {
  const words = wordsOf(file);
  return (path) => wordsOf(path).filter((word) => words.includes(word)).length;
}

/** The words of a path, in the singular, without those of its room and its ending. */
function wordsOf(path: string): string[] {
  return path
    .replace(/^(?:src\/)?[a-z]+\/|(?:\.test)?\.[jt]s$/g, '')
    .split(/s?(?:[^a-z0-9]+|$)/)
    .filter(Boolean);
}

/** Runs the tasks in their order, one on each core. */
async function concurrently<T>(tasks: readonly T[], run: (task: T) => Promise<void>) {
  const waiting = [...tasks];
  async function work(): Promise<void> {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) await run(task);
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work));
}

/**
 * The mutations of the given lines, or as many as asked for, in random order. Of several in one place, one is chosen:
 * the code cannot contain more.
 */
function choose(all: readonly Mutation[]): readonly Mutation[] {
  const { at } = values;
  const random = randomFrom(Number(values.seed));
  const ranked = all.map((mutation) => ({ mutation, rank: random.next() }));
  ranked.sort((one, other) => one.rank - other.rank);
  const found: Mutation[] = [];
  for (const { mutation } of ranked) {
    if (found.length === Number(values.count)) break;
    if (at !== undefined && !at.includes(`${mutation.file}:${mutation.line}`)) continue;
    if (!found.some((other) => overlap(mutation, other))) found.push(mutation);
  }
  return found;
}

function overlap(one: Mutation, other: Mutation): boolean {
  return (
    one.file === other.file &&
    one.start < other.start + other.before.length &&
    other.start < one.start + one.before.length
  );
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
  function add(node: ast.Node, after: string, last = node): void {
    const start = node.getStart(source);
    const line = source.getLineAndCharacterOfPosition(start).line + 1;
    const before = source.text.slice(start, last.end);
    const file = relative(tree, source.fileName);
    const isStatements = last !== node;
    if (after !== before) found.push({ file, line, start, before, after, isStatements });
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
    if (ast.isNumericLiteral(node) && !isTypeOrName(node)) {
      add(node, String(Number(textOf(node).replaceAll('_', '')) + 1));
    }
    if (ast.isBlock(node)) {
      for (const [index, first] of node.statements.entries()) {
        const second = node.statements[index + 1];
        if (second === undefined || ![first, second].every(ast.isExpressionStatement)) continue;
        add(first, `${textOf(second)}\n${textOf(first)}`, second);
      }
    }
    node.forEachChild(visit);
  }
  visit(source);
  return found;
}

function isTypeOrName(node: ast.Node): boolean {
  const { parent } = node;
  return (
    ast.isLiteralTypeNode(parent) || (ast.isPropertyAssignment(parent) && parent.name === node)
  );
}

/** Compiles the tests and the program, with all chosen mutations in them. */
function compile(): void {
  const ordered = [...chosen.entries()].sort(([, one], [, other]) => other.start - one.start);
  for (const [number, { file, start, before, after, isStatements }] of ordered) {
    const path = join(tree, file);
    const text = readFileSync(path, 'utf8');
    const applies = `globalThis.mutated?.(${number})`;
    const both = isStatements
      ? `if (${applies}) { ${after} } else { ${before} }`
      : `(${applies} ? (${after}) : (${before}))`;
    writeFileSync(path, text.slice(0, start) + both + text.slice(start + before.length));
  }
  const builder = join(tree, 'src', 'build', 'build-program.js');
  const banner = /(?<=export const REQUIRING =\s)/;
  const text = readFileSync(builder, 'utf8');
  writeFileSync(builder, text.replace(banner, `${JSON.stringify(SWITCH)} +`));
  execFileSync(process.execPath, [...LOADER, 'test/build.ts'], { cwd: tree, stdio: 'inherit' });
}

function testFiles(): string[] {
  return readdirSync(join(tree, 'build', 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.js') && !path.endsWith('.deep.test.js'))
    .sort();
}

/** The test file with what it reaches, or null if it fails without a mutation. */
async function soundTest(path: string): Promise<SoundTest | null> {
  const noted = join(scratch.path, 'reached', path);
  mkdirSync(join(noted, '..'), { recursive: true });
  const startedAt = performance.now();
  if (!(await passes(path, { MUTATIONS_REACHED: noted }))) return null;
  const numbers = existsSync(noted) ? readFileSync(noted, 'utf8').trim().split(' ') : [];
  return { path, ms: performance.now() - startedAt, reached: new Set(numbers.map(Number)) };
}

/** The first of the test files that fails with the mutation, or null. */
async function testThatCatches(
  number: number,
  tests: readonly SoundTest[],
): Promise<string | null> {
  for (const { path, ms } of tests) {
    if (!(await passes(path, { MUTATION: String(number) }, 2 * ms + PATIENCE_MS))) return path;
  }
  return null;
}

/** Whether the test file passes in time. Everything that it started is ended. */
async function passes(path: string, environment: NodeJS.ProcessEnv, limitMs = LIMIT_MS) {
  const child = spawnNode(['--enable-source-maps', join(tree, 'build', 'test', path)], {
    cwd: tree,
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, TMPDIR: scratch.path, ...environment },
  });
  const group = child.pid ?? 0;
  groups.add(group);
  const timer = setTimeout(endGroup, limitMs, group);
  const [code] = await once(child, 'exit');
  clearTimeout(timer);
  endGroup(group);
  groups.delete(group);
  return code === 0;
}

function endGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // All its processes have ended.
  }
}

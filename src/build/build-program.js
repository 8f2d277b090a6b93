/**
 * The program as `npm start` and the package run it: a few files in `dist/program/<fingerprint>`. The
 * fingerprint is that of the sources, and the folder gets its name only once it is complete. So a program
 * that is found is whole and of these sources, whichever builds run at once or were killed.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL('../..', import.meta.url));
const programs = join(root, 'dist', 'program');
const UNFINISHED = '.unfinished-';
/** Far longer than any build takes. */
const ABANDONED_MS = 10 * 60_000;
/** A server that still runs loads later what it needs later, so the programs before are kept for a while. */
const KEPT_PROGRAMS = 3;

/** The modules that Node.js starts with: the command line, and the worker of each kind of thread or process. */
const ENTRIES = {
  main: 'src/cli/main.ts',
  'backup-worker': 'src/server/threads/backup-worker.ts',
  'edge-worker': 'src/server/threads/edge-worker.ts',
  'list-worker': 'src/server/threads/list-worker.ts',
  'scrub-worker': 'src/server/threads/scrub-worker.ts',
  'signer-worker': 'src/server/threads/signer-worker.ts',
  'watchdog-worker': 'src/server/threads/watchdog-worker.ts',
};

/** The folder of the scripts that pages run. */
const BROWSER = 'browser';

/**
 * What is not bundled: native modules, which find their binaries from where they are, and what one of them
 * must share with the program. Everything else is bundled, because hundreds of modules take longer to load than one program.
 */
export const EXTERNAL = [
  'fs-native-extensions',
  'lmdb',
  'msgpackr',
  'sodium-native',
  'uWebSockets.js',
];

/** Gathered CommonJS modules require those of Node.js. */
export const REQUIRING =
  "import { createRequire as requiring } from 'node:module'; const require = requiring(import.meta.url);";

/** Returns the path of the compiled program; builds it, and says so, when the sources have changed. */
export function builtProgram() {
  const main = join(programs, fingerprint(), 'main.js');
  if (existsSync(main)) return main;
  assertCompiler();
  process.stderr.write('Compiling the program, since its sources are new or have changed.\n');
  try {
    write(dirname(main));
    writePointer(main);
    removeOthers(dirname(main));
  } catch (error) {
    throw explained(error);
  }
  return main;
}

function write(program) {
  mkdirSync(programs, { recursive: true });
  const begun = mkdtempSync(join(programs, UNFINISHED));
  try {
    compileApart(begun);
    // It is private so far, and users other than the one who compiles may run it.
    chmodSync(begun, 0o755);
    finish(begun, program);
  } catch (error) {
    removeIfPossible(begun);
    throw error;
  }
}

/** The reason why the program cannot be built matters more than what is left of it. */
function removeIfPossible(folder) {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // A later build removes it.
  }
}

function explained(error) {
  if (!('syscall' in error)) return error;
  const cure = 'run npm run build as the owner of this folder';
  return new Error(`The program cannot be written to ${programs} (${error.code}): ${cure}`);
}

/** Of contents, not of times: a copy or another branch may have older files. */
function fingerprint() {
  const hash = createHash('sha256');
  for (const path of ['package.json', ...filesBelow('machines'), ...filesBelow('src')]) {
    const content = readFileSync(join(root, path));
    hash.update(`${path}\n${content.length}\n`).update(content);
  }
  return hash.digest('hex').slice(0, 16);
}

function filesBelow(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .sort();
}

function assertCompiler() {
  try {
    require.resolve('esbuild');
  } catch (cause) {
    if (cause.code !== 'MODULE_NOT_FOUND') throw cause;
    const sentence =
      'The program is not compiled, and esbuild, which compiles it, is not installed: run npm ci without --omit=dev, then npm run build';
    throw new Error(sentence, { cause });
  }
}

/** In a process of its own, which ends: the compiler and its memory would stay with the program that runs here. */
function compileApart(folder) {
  try {
    const stdio = ['ignore', 'inherit', 'inherit'];
    execFileSync(process.execPath, [fileURLToPath(import.meta.url), folder], { stdio });
  } catch (cause) {
    throw new Error('The sources cannot be compiled, for the reasons above', { cause });
  }
}

function compile(folder) {
  const { outputFiles } = require('esbuild').buildSync({
    absWorkingDir: root,
    entryPoints: ENTRIES,
    outdir: folder,
    chunkNames: '[hash]',
    write: false,
    bundle: true,
    splitting: true,
    external: EXTERNAL,
    banner: { js: REQUIRING },
    format: 'esm',
    platform: 'node',
    target: 'node20.15',
    logLevel: 'error',
  });
  mkdirSync(join(folder, BROWSER));
  for (const { path, contents } of outputFiles) writeFileSync(path, contents, { flush: true });
  for (const [name, contents] of require('./build-browser.cjs').browserScripts()) {
    writeFileSync(join(folder, BROWSER, `${name}.js`), contents, { flush: true });
  }
}

/** Another start may have finished the same program before. */
function finish(begun, program) {
  try {
    renameSync(begun, program);
  } catch (error) {
    if (!existsSync(join(program, 'main.js'))) throw error;
    rmSync(begun, { recursive: true });
  }
}

/** The command of the package: `dist/src/main.js` leads to the program of the last build. */
function writePointer(main) {
  const pointer = join(root, 'dist', 'src', 'main.js');
  const target = `../program/${basename(dirname(main))}/main.js`;
  mkdirSync(dirname(pointer), { recursive: true });
  const begun = `${pointer}.${process.pid}`;
  const text = `#!/usr/bin/env -S node --no-allocation-site-pretenuring\nimport '${target}';\n`;
  writeFileSync(begun, text, { mode: 0o755, flush: true });
  renameSync(begun, pointer);
}

function removeOthers(current) {
  const now = writtenAt(current);
  const others = readdirSync(programs)
    .map((name) => join(programs, name))
    .filter((path) => path !== current)
    .sort((a, b) => writtenAt(b) - writtenAt(a));
  const isFinished = (path) => !basename(path).startsWith(UNFINISHED);
  const earlier = others.filter(isFinished).slice(KEPT_PROGRAMS - 1);
  const abandoned = others.filter(
    (path) => !isFinished(path) && writtenAt(path) < now - ABANDONED_MS,
  );
  for (const path of [...earlier, ...abandoned]) removeIfPossible(path);
}

/** When anything was last added; long ago if another start has just removed or renamed it. */
function writtenAt(folder) {
  return statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    compile(process.argv[2]);
  } catch (error) {
    // The compiler has printed its own.
    if (!('errors' in error)) process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

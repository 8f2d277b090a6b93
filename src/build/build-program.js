/**
 * Builds the program that `npm start` and the package run: a few files in `dist/program/<fingerprint>`. The fingerprint
 * covers the sources, and the folder gets its name only when it is complete. A program that is found is therefore
 * complete and matches the sources, even if builds run concurrently or are killed.
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
/** Unfinished builds older than this are removed; no build takes nearly this long. */
const ABANDONED_MS = 10 * 60_000;
/** A running server may still load modules from an older program, so the most recent programs are kept. */
const KEPT_PROGRAMS = 3;

/** The entry points: the command line, and the worker for each kind of thread or process. */
const ENTRIES = {
  main: 'src/cli/main.ts',
  'backup-worker': 'src/server/threads/backup-worker.ts',
  'edge-worker': 'src/server/threads/edge-worker.ts',
  'gate-worker': 'src/server/threads/gate-worker.ts',
  'list-worker': 'src/server/threads/list-worker.ts',
  'signer-worker': 'src/server/threads/signer-worker.ts',
  'visit-worker': 'src/server/threads/visit-worker.ts',
  'watchdog-worker': 'src/server/threads/watchdog-worker.ts',
};

/** The folder for the style sheets and scripts of the pages. */
const BROWSER = 'browser';

/**
 * Modules that are not bundled: native modules, which locate their binaries relative to themselves, and a module that
 * one of them must share with the program. Everything else is bundled, because loading hundreds of modules takes longer
 * than loading one program.
 */
export const EXTERNAL = [
  'fs-native-extensions',
  'lmdb',
  'msgpackr',
  'sodium-native',
  'uWebSockets.js',
];

/** Bundled CommonJS modules call `require` to load Node.js modules. */
export const REQUIRING =
  "import { createRequire as requiring } from 'node:module'; const require = requiring(import.meta.url);";

/** Returns the path of the compiled program. If the sources have changed, prints a notice and builds it first. */
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
    // The temporary folder is private, but other users may also run the program.
    chmodSync(begun, 0o755);
    finish(begun, program);
  } catch (error) {
    removeIfPossible(begun);
    throw error;
  }
}

/** Ignores errors, because the reason why the build failed matters more than leftover files. */
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

/** Hashes contents instead of modification times, because a copy or another branch may have older files. */
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

/** Compiles in a separate process; otherwise, the compiler's memory would stay allocated in the running program. */
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
  for (const [name, contents] of require('./build-browser.cjs').browserFiles()) {
    writeFileSync(join(folder, BROWSER, name), contents, { flush: true });
  }
}

/** Tolerates a concurrent start that has already finished the same program. */
function finish(begun, program) {
  try {
    renameSync(begun, program);
  } catch (error) {
    if (!existsSync(join(program, 'main.js'))) throw error;
    rmSync(begun, { recursive: true });
  }
}

/** Writes the command of the package, `dist/src/main.js`, which imports the program of the last build. */
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

/** When anything was last added to the folder; 0 if a concurrent start has just removed or renamed it. */
function writtenAt(folder) {
  return statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    compile(process.argv[2]);
  } catch (error) {
    // The compiler has already printed its own errors.
    if (!('errors' in error)) process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

/**
 * Compiles sources and tests into `build`, once for the whole run: otherwise every test file, and every process that it
 * starts, would compile TypeScript itself. Each test file is also one output file in `build`; modules that several of
 * them import are bundled, because loading hundreds of modules takes longer than running most test files. Processes
 * that tests start run the program as it is shipped.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { builtProgram, EXTERNAL, REQUIRING } from '../src/build/build-program.js';
import { IMPORTS_FILE, ownImports, STARTS_AUTHORITY } from './support/imports.ts';
import { PROJECT_PATH } from './support/project.ts';

const TARGET = join(PROJECT_PATH, 'build');

/** Entry points of processes and threads, and modules that a test imports by path. */
const BY_PATH = [
  'test/chaos/main.ts',
  'test/run.ts',
  ...namedByPath(),
  ...filesIn('machines', '.ts'),
  ...filesIn('bench/load', '-worker.ts'),
  ...filesIn('src/server/threads', '-worker.ts'),
];

rmSync(TARGET, { recursive: true, force: true });
const { devDependencies } = JSON.parse(readFileSync(join(PROJECT_PATH, 'package.json'), 'utf8'));
const options = {
  absWorkingDir: PROJECT_PATH,
  outbase: PROJECT_PATH,
  outdir: TARGET,
  chunkNames: 'gathered/[hash]',
  bundle: true,
  splitting: true,
  // The sources require `pg` only when they need it, so there must be a single copy, outside the bundles.
  external: [...EXTERNAL, 'pg', ...Object.keys(devDependencies)],
  banner: { js: REQUIRING },
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: 'linked',
  sourcesContent: false,
  metafile: true,
  logLevel: 'warning',
  plugins: [knownPlaces()],
} satisfies BuildOptions;
const tests = filesIn('test', '.test.ts');
// Modules that all files of a build import form one chunk, and loading hundreds of chunks takes longer than running most
// files, so the files that start an authority have a build of their own.
const starting = tests.filter((path) =>
  STARTS_AUTHORITY.test(readFileSync(join(PROJECT_PATH, path), 'utf8')),
);
const others = [...tests.filter((path) => !starting.includes(path)), ...BY_PATH];
const builds = [starting, others].map((entryPoints) => build({ ...options, entryPoints }));
const found = (await Promise.all(builds)).map(({ metafile }) => ownImports(metafile));
writeFileSync(join(TARGET, IMPORTS_FILE), JSON.stringify(Object.assign({}, ...found)));
const browser = join(TARGET, 'src', 'pages', 'browser');
execFileSync('node', ['src/build/build-browser.cjs', browser], {
  cwd: PROJECT_PATH,
  stdio: 'inherit',
});
copyFileSync(join(PROJECT_PATH, 'package.json'), join(TARGET, 'package.json'));
cpSync(dirname(builtProgram()), join(TARGET, 'program'), { recursive: true });

/** Paths are relative to the project. */
function filesIn(folder: string, end: string): string[] {
  return readdirSync(join(PROJECT_PATH, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(end))
    .map((name) => join(folder, name));
}

/** Modules that tests name by path so that another process loads them: each must be a separate file. */
function namedByPath(): string[] {
  const named = filesIn('test', '.ts').flatMap((file) => {
    const text = readFileSync(join(PROJECT_PATH, file), 'utf8');
    return [...text.matchAll(/\bmodulePath\(\s*'([^']+)'/g)].map(([, source]) => source as string);
  });
  return [...new Set(named)];
}

/** A bundled module still reports the location of its source. */
function knownPlaces(): Plugin {
  return {
    name: 'known-places',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const place = join(TARGET, relative(PROJECT_PATH, path)).replace(/\.ts$/, '.js');
        const contents = readFileSync(path, 'utf8')
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(place).href))
          .replaceAll('import.meta.dirname', JSON.stringify(dirname(place)));
        return { contents, loader: 'ts' };
      });
    },
  };
}

/**
 * Compiles sources and tests into `build`, once for the whole run: otherwise every test file, and every
 * process that it starts, would translate TypeScript for itself. What tests run as a process is the program as
 * it is shipped, a few files that start much faster than hundreds of modules.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { builtProgram } from '../src/build-program.js';
import { PROJECT_PATH } from './support/project.ts';

const TARGET = join(PROJECT_PATH, 'build');

rmSync(TARGET, { recursive: true, force: true });
const inProject = { cwd: PROJECT_PATH, stdio: 'inherit' } as const;
execFileSync('tsc', ['-p', 'tsconfig.test.json'], inProject);
execFileSync('node', ['src/build-browser.cjs', join(TARGET, 'src', 'pages', 'browser')], inProject);
copyFileSync(join(PROJECT_PATH, 'package.json'), join(TARGET, 'package.json'));
cpSync(dirname(builtProgram()), join(TARGET, 'program'), { recursive: true });
await gatherTypebox();

/** Typebox is 700 modules, which take longer to load than everything else; the tree gets them as a few. */
async function gatherTypebox(): Promise<void> {
  const entries = ['index', 'compile/index', 'format/index', 'value/index'];
  const from = join(PROJECT_PATH, 'node_modules', 'typebox');
  const to = join(TARGET, 'node_modules', 'typebox');
  await build({
    entryPoints: entries.map((entry) => join(from, 'build', `${entry}.mjs`)),
    outdir: join(to, 'build'),
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
  const { name, type, exports } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
  writeFileSync(join(to, 'package.json'), JSON.stringify({ name, type, exports }));
}

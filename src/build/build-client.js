/** Builds the client as a separate package in an empty folder: `node build-client.js FOLDER`. */
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const here = join(root, 'src/client/package');
const folder = resolve(process.argv[2]);
const compiler = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));

rmSync(folder, { recursive: true, force: true });
const project = ['-p', join(root, 'tsconfig.client.json'), '--outDir', folder];
execFileSync(process.execPath, [join(compiler, 'bin/tsc'), ...project], { stdio: 'inherit' });
for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
  if (name.endsWith('.d.ts')) nameCompiledFiles(join(folder, name));
}
for (const name of ['package.json', 'README.md']) cpSync(join(here, name), join(folder, name));
cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));

/** Renames imports of `.ts` files, which the compiler leaves in declarations, but which are not in the package. */
function nameCompiledFiles(path) {
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(/(from '|import\(["'])(\.[^'"]*)\.ts(["'])/g, '$1$2.js$3'));
}

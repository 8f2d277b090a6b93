/** `npm run build`: builds the program and the modules that the package exports into an empty `dist/`. */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtProgram } from './build-program.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const compiler = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));

rmSync(join(root, 'dist'), { recursive: true, force: true });
builtProgram();
execFileSync(process.execPath, [join(compiler, 'bin/tsc'), '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});

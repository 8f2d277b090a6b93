/** The location of the project, and how tests run its code in other processes: compiled, if the tests are compiled. */
import { fileURLToPath } from 'node:url';
import './isolation.ts';

const isCompiled = import.meta.url.endsWith('.js');
/** The folder of `src` and `test` as they run: the project itself, or `build` in it. */
const code = new URL('../../', import.meta.url);

/** The project's folder, with everything that is not compiled. */
export const PROJECT = isCompiled ? new URL('../', code) : code;
export const PROJECT_PATH = fileURLToPath(PROJECT);

/** Arguments that make Node.js load TypeScript; empty if everything is compiled. */
export const LOADER: readonly string[] = isCompiled ? [] : ['--import', import.meta.resolve('tsx')];

/** The path of a module, given that of its source, such as `src/cli/main.ts`. */
export function modulePath(source: string): string {
  return fileURLToPath(new URL(isCompiled ? source.replace(/\.ts$/, '.js') : source, code));
}

/** The program; if everything is compiled, as it is shipped. */
export const PROGRAM_PATH = isCompiled
  ? fileURLToPath(new URL('program/main.js', code))
  : modulePath('src/cli/main.ts');

/** Arguments for Node.js that run the program. */
export const PROGRAM: readonly string[] = [...LOADER, PROGRAM_PATH];

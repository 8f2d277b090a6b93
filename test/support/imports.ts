/** The imports between the modules of the project, as found by the compiler; they say which test files load what. */
import type { Metafile } from 'esbuild';

/**
 * For each path in the project, such as `test/init.test.ts`, the modules of the project that it imports, except for
 * types.
 */
export type Imports = Readonly<Record<string, readonly string[]>>;

/** The file in `build` that contains the imports. */
export const IMPORTS_FILE = 'imports.json';

/** In the test files that start an authority in their process: they are compiled, and run, with each other. */
export const STARTS_AUTHORITY = /\b(?:startTestAuthority|sharedAuthority|startPages)\(/;

/** What each of the project's modules in a build imports, without types. */
export function ownImports({ inputs }: Pick<Metafile, 'inputs'>): Imports {
  const own = Object.entries(inputs).filter(([path]) => path.endsWith('.ts'));
  return Object.fromEntries(
    own.map(([path, { imports }]) => [
      path,
      imports.map((imported) => imported.path).filter((imported) => imported.endsWith('.ts')),
    ]),
  );
}

/** What the compiler found about the modules of the project, for the runner, which chooses files by it. */

/** By path in the project, such as `test/init.test.ts`: the modules of the project that it imports, but for types. */
export type Imports = Readonly<Record<string, readonly string[]>>;

/** In `build`. */
export const IMPORTS_FILE = 'imports.json';

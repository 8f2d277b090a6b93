/** The imports between the modules of the project, as found by the compiler; the runner uses them to choose files. */

/**
 * For each path in the project, such as `test/init.test.ts`, the modules of the project that it imports, except for
 * types.
 */
export type Imports = Readonly<Record<string, readonly string[]>>;

/** The file in `build` that contains the imports. */
export const IMPORTS_FILE = 'imports.json';

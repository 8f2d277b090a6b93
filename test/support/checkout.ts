/**
 * A separate checkout with everything that `npm start`, `npm run mesh-na` and `npm run build` need, and with the
 * packages of this one.
 */
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_PATH } from './project.ts';

const SOURCES = ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'machines', 'src'];

/** Creates the folder; `lacking` names packages that are not installed there. */
export function makeCheckout(folder: string, lacking: readonly string[] = []): void {
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  for (const name of SOURCES)
    cpSync(join(PROJECT_PATH, name), join(folder, name), { recursive: true });
  const packages = join(PROJECT_PATH, 'node_modules');
  for (const name of readdirSync(packages)) {
    if (lacking.includes(name)) continue;
    symlinkSync(join(packages, name), join(folder, 'node_modules', name));
  }
}

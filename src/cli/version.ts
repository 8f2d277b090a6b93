import { existsSync, readFileSync } from 'node:fs';

/** The version of this program, from its package: the nearest manifest above this module. */
export function packageVersion(): string {
  let manifest = new URL('package.json', import.meta.url);
  while (!existsSync(manifest)) manifest = new URL('../package.json', manifest);
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}

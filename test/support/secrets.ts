/** What must not appear in anything that others can read. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readKeyFile } from '../../src/base/keys/key-file.ts';

/** The private keys of the folder, in base64 and in hexadecimal. */
export function privateKeysOf({ dataDir }: { readonly dataDir: string }): string[] {
  return ['na', 'root', 'operator-privileged', 'operator-standard'].flatMap((name) => {
    const file = join(dataDir, 'keys', `${name}.key`);
    const seed = readKeyFile(file);
    assert.ok(readFileSync(file, 'utf8').includes(seed.toString('base64')));
    return [seed.toString('base64'), seed.toString('hex')];
  });
}

/** One folder for the tests of a file. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

/** The path of an empty folder that is removed after the tests of the file or suite. */
export function sharedScratch(): string {
  const path = mkdtempSync(join(tmpdir(), 'mesh-na-test-'));
  after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';
import { scratchFolder } from './support/scratch.ts';
import { sourcePlace, withSourcePlaces } from './support/source-places.ts';

const SOURCE = `interface Removed {
  readonly name: string;
}

export function fail(): never {
  throw new Error('failed');
}
`;

/** A compiled module, and the line and column in it where it throws. */
async function compiled() {
  const folder = join(scratchFolder('mesh-na-places-').path, 'build');
  mkdirSync(folder);
  const { code, map } = await transform(SOURCE, {
    loader: 'ts',
    sourcemap: true,
    sourcefile: 'failing.ts',
  });
  const path = join(folder, 'failing.js');
  writeFileSync(path, code);
  writeFileSync(`${path}.map`, map);
  const line = code.split('\n').findIndex((text) => text.includes('new Error')) + 1;
  return { folder, path, line, column: code.split('\n')[line - 1]?.indexOf('new Error') ?? 0 };
}

async function shown(text: string): Promise<string> {
  async function* output() {
    yield text;
  }
  let all = '';
  for await (const part of withSourcePlaces(output())) all += part;
  return all;
}

test('the runner shows where the source of a compiled test is', async () => {
  const { folder, path, line, column } = await compiled();
  const source = join(folder, 'failing.ts');
  assert.deepEqual(sourcePlace(path, line, column + 1), { file: source, line: 6, column: 9 });
  for (const place of [path, pathToFileURL(path).href]) {
    const text = await shown(`Error: failed\n    at fail (${place}:${line}:${column + 1})\n`);
    assert.equal(text, `Error: failed\n    at fail (${source}:6:9)\n`);
  }
});

test('it leaves other places, and those without a map, as they are', async () => {
  const text = 'at node:internal/process:95:5, /nowhere/build/lost.js:3:4 and build/lost.js:3:4\n';
  assert.equal(await shown(text), text);
});

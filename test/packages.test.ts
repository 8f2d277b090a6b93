/** The contents of both packages. `build.deep` and `client-package.deep` install and use them. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { buildSync } from 'esbuild';
import type * as Client from '../src/client/package/index.ts';
import { PROJECT_PATH } from './support/project.ts';

test('the client is bundled for browsers, without any module of Node.js, and signs and verifies', async () => {
  const [bundle] = buildSync({
    entryPoints: [join(PROJECT_PATH, 'src/client/package/index.ts')],
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'esm',
  }).outputFiles;
  const url = `data:text/javascript,${encodeURIComponent(bundle?.text ?? '')}`;
  const { keyFromSeed, verifyText }: typeof Client = await import(url);
  const key = keyFromSeed(new Uint8Array(32).fill(7));
  const signed = await key.sign(new TextEncoder().encode('a text'));
  const signature = Buffer.from(signed).toString('base64');
  assert.equal(verifyText(key.publicKey, 'a text', signature), true);
  assert.equal(verifyText(key.publicKey, 'another', signature), false);
});

test('the exports and the command of the package are built from existing sources', () => {
  const manifest = JSON.parse(readFileSync(join(PROJECT_PATH, 'package.json'), 'utf8'));
  for (const { default: path } of Object.values<{ default: string }>(manifest.exports)) {
    const folder = dirname(path).replace('./dist/', '');
    const sources = readdirSync(join(PROJECT_PATH, folder)).filter((name) => name.endsWith('.ts'));
    assert.notDeepEqual(sources, [], path);
  }
  assert.deepEqual(manifest.bin, { 'mesh-na': 'dist/src/main.js' });
});

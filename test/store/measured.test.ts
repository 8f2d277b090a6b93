import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { measured } from '../../src/store/measured.ts';
import { networkFolder } from '../support/folders.ts';
import { unit } from './conformance.ts';

test('a commit that has not reached the disk after two seconds makes the store unhealthy until it does', async () => {
  await using folder = await networkFolder('alpha');
  const disk = openLmdbStore(folder.path);
  await disk.load();
  let release = () => {};
  const stuck = new Promise<void>((resolve) => {
    release = resolve;
  });
  let now = 0;
  const store = measured(
    { ...disk, commit: (unit) => stuck.then(() => disk.commit(unit)) },
    { elapsed: () => now, stored: () => undefined },
  );
  const committed = store.commit(unit());
  now = 1999;
  assert.equal(store.health(), null);
  now = 2001;
  assert.equal(store.health(), 'a commit does not reach the disk');
  release();
  await committed;
  assert.equal(store.health(), null);
  await disk.close();
});

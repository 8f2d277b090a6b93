/** The digest of the recognition graph is not computed in one step if it was already built in slices. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGraphDigest } from '../src/authority/recognition/graph.ts';
import { createRecognitionIndex } from '../src/authority/recognition/recognition-index.ts';
import { noteImport } from './support/trust.ts';

test('the digest of a graph is cached until a treaty or the clock changes the graph', () => {
  const index = createRecognitionIndex();
  let read = 0;
  const edges = () => {
    read += 1;
    return index.edges();
  };
  const digest = createGraphDigest({ ...index, edges });
  assert.equal(digest.isKnown(10), false);
  digest.note({ version: index.version(), from: 10, until: 20, digest: 'built' });
  assert.deepEqual([digest.isKnown(10), digest.at(10), digest.at(19)], [true, 'built', 'built']);
  assert.equal(read, 0, 'nothing is read again');
  assert.deepEqual([digest.isKnown(9), digest.isKnown(20)], [false, false]);
  noteImport(index, { issuer: 'beta', feedId: 'f-1', sequence: '1', revokedAt: 5 }, [
    ['a-1', null],
  ]);
  assert.equal(digest.isKnown(10), false);
  assert.notEqual(digest.at(10), 'built');
});

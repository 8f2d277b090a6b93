/** A key takes over while the nodes of a large fleet are counted, so that an overlap can be finished [authority-keys-9-5]. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deserialize, serialize } from 'node:v8';
import { documentText } from '../../src/protocol/contract/documents.ts';
import type { AuthorityKeys } from '../../src/protocol/records/authority-chain.ts';
import { type CallInput, call, type OperatorCallName } from './authority-calls.ts';
import { asOperator } from './instances/asking.ts';
import { BEGAN } from './instances/machine-runtime.ts';
import { openStill, SEED } from './instances/seed.ts';
import { KeyFolder } from './key-folder.ts';
import { copyOfDisk, keyOf, type MemoryDisk } from './memory-disk.ts';
import { AUTHORITY, GENESIS, NEXT_KEYS } from './requests.ts';
import { madeSuccession } from './successions.ts';

const PER_SLICE = 500;
const SLICES = 24;

test('finish counts anew in slices, never at once, if a key takes over during the count', async () => {
  const disk = largeFleet(SLICES * PER_SLICE);
  const folder = new KeyFolder();
  const [to = AUTHORITY] = NEXT_KEYS;
  folder.put(to);
  const { authority, documents, uuid, asking } = await openStill(disk, folder, BEGAN, 1);
  const ask = <Name extends OperatorCallName>(name: Name, given: CallInput<Name>) =>
    call(authority, name, asOperator(name, given, asking()));

  const latest = documents.latest('authority_keys');
  assert.ok(latest !== undefined);
  const document: AuthorityKeys = JSON.parse(documentText(latest));
  const ground = { genesis: GENESIS, document, now: BEGAN, uuid };
  const draft = { kind: 'planned', to, activatesIn: 0, overlap: 3_600_000, flaw: 'none' } as const;
  const { signed } = madeSuccession(ground, draft);
  assert.equal((await ask('stageSuccession', { succession: signed })).ok, true);

  const finishing = ask('finishSuccession', { despite: 0 });
  assert.equal((await ask('activateSuccession', {})).ok, true);
  const turns = countTurns();
  const refused = await finishing;
  assert.ok(turns() >= SLICES, `${turns()} turns for ${SLICES} slices`);
  assert.ok(!refused.ok);
  assert.equal(refused.refusal, 'nodes_have_not_followed');
  const { count } = refused.details;
  assert.equal(count, SLICES * PER_SLICE);
  assert.equal((await ask('finishSuccession', { despite: SLICES * PER_SLICE })).ok, true);
  await authority.close();
});

/** The seed with `nodes` more nodes, which have reported. */
function largeFleet(nodes: number): MemoryDisk {
  const disk = copyOfDisk(SEED.disk);
  const bytes = disk.subjects.get(keyOf('certificate', SEED.certificates[0] ?? ''));
  const { snapshot, ...row } = deserialize(bytes as Buffer);
  for (let i = 0; i < nodes; i += 1) {
    const id = `certificate-${i}`;
    const nodePublicKey = Buffer.from(id.padStart(32)).toString('base64');
    const context = { ...snapshot.context, nodePublicKey };
    const copy = { ...row, id, snapshot: { ...snapshot, context } };
    disk.subjects.set(keyOf('certificate', id), serialize(copy));
    const report = { lastSeen: BEGAN, status: 'healthy', remoteAddr: '', newestSignedAt: 0 };
    disk.liveness.set(id, { id, ...report });
  }
  return disk;
}

function countTurns(): () => number {
  let turns = 0;
  const immediate = setImmediate(function next() {
    turns += 1;
    setImmediate(next).unref();
  });
  immediate.unref();
  return () => turns;
}

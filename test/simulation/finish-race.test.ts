/** A key takes over while nodes are counted, so that an overlap can be finished [authority-keys-9-5], or during an overlap. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deserialize, serialize } from 'node:v8';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { documentText } from '../../src/protocol/contract/documents.ts';
import { type CallInput, call, type OperatorCallName } from './authority-calls.ts';
import { asOperator } from './instances/asking.ts';
import { BEGAN } from './instances/machine-runtime.ts';
import { openStill, SEED } from './instances/seed.ts';
import { KeyFolder } from './key-folder.ts';
import { copyOfDisk, keyOf, type MemoryDisk } from './memory-disk.ts';
import { AUTHORITY, NEXT_KEYS } from './requests.ts';
import { madeSuccession } from './successions.ts';

const PER_SLICE = 500;
const SLICES = 24;

/** An authority that holds the next keys, too, and stages successions to them. */
async function authorityOn(disk: MemoryDisk) {
  const folder = new KeyFolder();
  for (const key of NEXT_KEYS) folder.put(key);
  const { authority, documents, uuid, asking } = await openStill(disk, folder, BEGAN, 1);
  const ask = <Name extends OperatorCallName>(name: Name, given: CallInput<Name>) =>
    call(authority, name, asOperator(name, given, asking()));

  function published(name: 'genesis' | 'authority_keys') {
    const latest = documents.latest(name);
    assert.ok(latest !== undefined);
    return JSON.parse(documentText(latest));
  }

  async function stage(to: Signer, activatesIn: number): Promise<void> {
    const [genesis, document] = [published('genesis'), published('authority_keys')];
    const ground = { genesis, document, now: BEGAN, uuid };
    const draft = { kind: 'planned', to, activatesIn, overlap: 3_600_000, flaw: 'none' } as const;
    const { signed } = madeSuccession(ground, draft);
    assert.equal((await ask('stageSuccession', { succession: signed })).ok, true);
  }

  return { authority, ask, stage };
}

const [NEXT = AUTHORITY, LAST = AUTHORITY] = NEXT_KEYS;

test('finish counts anew in slices, never at once, if a key takes over during the count', async () => {
  const { authority, ask, stage } = await authorityOn(largeFleet(SLICES * PER_SLICE));
  await stage(NEXT, 0);

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

test('a key that stops signing because the next one takes over is in the audit log', async () => {
  const disk = copyOfDisk(SEED.disk);
  const { authority, ask, stage } = await authorityOn(disk);
  for (const [to, activatesIn] of [
    [NEXT, -1],
    [LAST, 0],
  ] as const) {
    await stage(to, activatesIn);
    assert.equal((await ask('activateSuccession', {})).ok, true);
  }
  const changes = disk.audit.slice(SEED.disk.audit.length);
  assert.deepEqual(
    changes.map(({ event_type, details }) => [event_type, details.public_key ?? details.to_key]),
    [
      ['authority_succession_staged', NEXT.publicKey],
      ['authority_key_activated', NEXT.publicKey],
      ['authority_succession_staged', LAST.publicKey],
      ['authority_key_retired', AUTHORITY.publicKey],
      ['authority_key_activated', LAST.publicKey],
    ],
  );
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

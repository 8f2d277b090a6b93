/** The authority key of linked instances changes while they answer requests. */
import assert from 'node:assert/strict';
import { cpSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { chainAt, FIRST } from './support/authority-chain.ts';
import type { ChildServer } from './support/child-server.ts';
import { scratchFolder } from './support/folders.ts';
import { isActive, placeOf, testInstances } from './support/instances.ts';
import { startCluster } from './support/postgresql.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';
import { keyIn, stage, step, succession } from './support/successions.ts';
import { issued, recognize } from './support/trust.ts';
import { until } from './support/until.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

const LINKED = { MESH_LINK: '127.0.0.1:0' };

test('a key is activated once every linked instance has it, signs everywhere at once, and stays after a change of the active instance', async () => {
  await using elsewhere = scratchFolder();
  await using instances = await testInstances(cluster);
  const other = join(elsewhere.path, 'other');
  cpSync(instances.folder, other, { recursive: true });
  const active = await instances.start(LINKED);
  const standby = await instances.start(LINKED, other);
  await until(async () => (await placeOf(standby)).ready);
  // Each instance writes its row, and reads those of the others, once a second.
  await until(async () => /^mesh_na_standbys 1$/m.test((await get(active.na, '/metrics')).text));
  const node = await joinedNode(standby.na);

  const { na } = active;
  const signed = await succession(na);
  assert.equal(outcome(await stage(na, signed)), '200');
  const early = await step(na, 'activate');
  assert.equal(outcome(early), '409 authority_key_not_held');
  assert.equal(early.body.error.details.instances, 1);
  assert.equal(await issuerAt(standby), signed.statement.from_key);

  const keys = (folder: string, name: string) => join(folder, 'keys', name);
  cpSync(keys(instances.folder, 'na.next.key'), keys(other, 'na.next.key'));
  await activated(active, signed.statement.to_key);
  assert.equal(
    await issuerAt(standby),
    signed.statement.to_key,
    'known where it was not activated',
  );
  assert.equal(outcome(await heartbeat(standby.na, node)), '200');
  await assertAnswersAsActive(standby, active);

  // The instance that takes over finds the key in the state.
  await active.end('SIGKILL');
  await until(() => isActive(standby));
  assert.equal(await issuerAt(standby), signed.statement.to_key);
  assert.equal(outcome(await heartbeat(standby.na, node)), '200');

  // Its folder has the genesis block and the previous key, so it determines which key opens the link.
  const again = await instances.start(LINKED);
  await until(async () => (await placeOf(again)).ready);
  assert.equal(outcome(await heartbeat(again.na, node)), '200');

  assert.equal(
    outcome(await step(standby.na, 'finish', { despite: await laggards(standby) })),
    '200',
  );
  const holdsNewKey = (folder: string) =>
    keyIn(folder, 'na.key').publicKey === signed.statement.to_key;
  await until(async () => holdsNewKey(other) && holdsNewKey(instances.folder));
  await until(async () => outcome(await heartbeat(again.na, node)) === '200');
});

test('a stolen key opens no link after the activation, and each instance destroys its own copy', async () => {
  await using elsewhere = scratchFolder();
  await using instances = await testInstances(cluster);
  const active = await instances.start(LINKED);
  const { na } = active;
  const signed = await succession(na, { kind: 'compromise' });
  const [other, thief] = [join(elsewhere.path, 'other'), join(elsewhere.path, 'thief')];
  cpSync(instances.folder, other, { recursive: true });
  cpSync(instances.folder, thief, { recursive: true });
  renameSync(join(thief, 'keys', 'na.next.key'), join(elsewhere.path, 'unused'));
  const standby = await instances.start(LINKED, other);
  const stolen = await instances.start(LINKED, thief);
  await until(async () => (await placeOf(standby)).ready && (await placeOf(stolen)).ready);
  const node = await joinedNode(na);
  assert.equal(outcome(await stage(na, signed)), '200');
  await until(async () => (await step(na, 'activate')).body.error?.details.instances === 1);
  await stolen.end('SIGKILL');
  await activated(active, signed.statement.to_key);

  await until(async () => outcome(await heartbeat(standby.na, node)) === '200');
  assert.equal(await issuerAt(standby), signed.statement.to_key);
  await until(async () => keyIn(other, 'na.key').publicKey === signed.statement.to_key);
  const returned = await instances.start(LINKED, thief);
  for (let round = 0; round < 20; round += 1) {
    assert.equal((await placeOf(returned)).ready, false, 'it is not linked');
    assert.match(outcome(await heartbeat(returned.na, node)), /^503/);
  }
});

/**
 * Checks that a standby answers like the active instance: how many nodes have followed, and a treaty that follows its subject.
 */
async function assertAnswersAsActive(standby: ChildServer, active: ChildServer): Promise<void> {
  const path = '/admin/authority-keys/adoption';
  const counted = await Promise.all(
    [standby, active].map(({ na }) => operate(na, path, {}, { method: 'GET' })),
  );
  for (const answer of counted) {
    assert.equal(outcome(answer), '200');
    const { succession: followed, nodes } = answer.body;
    assert.deepEqual([followed.state, nodes.active, nodes.laggards], ['overlap', 1, 1]);
  }
  const terms = { subject_sovereign_id: 'harbor', subject_public_keys: [FIRST.publicKey] };
  const { treaty_id } = await issued(recognize(standby.na, terms));
  const successions = chainAt(Date.now(), 'harbor', [{ kind: 'planned', at: -1, overlap: 10 }]);
  const body = { authority_keys: { successions } as unknown as JsonObject };
  const follow = `/admin/recognition-treaties/${treaty_id}/follow`;
  const successor = await issued(operate(standby.na, follow, body));
  assert.deepEqual(successor.subject_public_keys, [successions[0]?.to_key, FIRST.publicKey]);
  const { lifecycle } = (await get(active.na, `/recognition-treaties/${treaty_id}`)).body;
  assert.equal(lifecycle.replacement_treaty_id, successor.treaty_id);
}

/** Requests the activation until it has happened; the service also does it by itself. */
async function activated(server: ChildServer, publicKey: string): Promise<void> {
  await until(async () => {
    await step(server.na, 'activate');
    return (await issuerAt(server)) === publicKey;
  });
}

async function issuerAt({ na }: ChildServer): Promise<string> {
  const [crl, genesis] = [await get(na, '/crl'), await get(na, '/genesis')];
  assert.equal(crl.body.issuer, genesis.body.network_authority.public_key);
  return crl.body.issuer;
}

/** The number of nodes that have not followed, according to the refusal. */
async function laggards({ na }: ChildServer): Promise<number> {
  const refused = await step(na, 'finish', {});
  assert.equal(outcome(refused), '409 nodes_have_not_followed');
  return refused.body.error.details.count;
}

/** The authority key of linked instances changes while they answer requests, and of one with a signer [signer-3]. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { nextKey } from '../src/cli/authority-key/next-key.ts';
import { startTestAuthority } from './support/authority.ts';
import { chainAt, FIRST } from './support/authority-chain.ts';
import type { ChildServer } from './support/child-server.ts';
import { HOUR } from './support/clock.ts';
import { scratchFolder } from './support/folders.ts';
import { isActive, placeOf, testInstances } from './support/instances.ts';
import { startCluster } from './support/postgresql.ts';
import {
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
} from './support/requests.ts';
import { signedNetwork, startSigner } from './support/signer.ts';
import { signersOf } from './support/signing.ts';
import { activate, keyIn, stage, step, succession } from './support/successions.ts';
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

// A succession whose keys are in a signer: it gets the next key through a restart, and both keys sign until the end
// [signer-3].

for (const listThreadFrom of [1000, 1]) {
  const where = listThreadFrom === 1 ? 'the thread for long lists' : 'its own thread';
  test(`a succession with a signer, lists on ${where}`, async () => {
    const { dataDir, address, keyFile } = signedNetwork();
    const { signer: to, file: nextFile } = nextKey(keyFile, () => randomBytes(32));
    const from = signerFromSeed(readKeyFile(keyFile));
    let signer = await startSigner({ keyFile, address });
    let na = await startTestAuthority({ dataDir, flags: { signer: address }, listThreadFrom });
    const enrollment = async () => (await get(na, '/readyz')).body.enrollment;
    const restartSigner = async (file: string, ...args: string[]) => {
      await signer.end('SIGKILL');
      await until(async () => (await enrollment()) === 'signer_unavailable');
      signer = await startSigner({ keyFile: file, address }, args);
    };
    const isOpen = () => until(async () => (await enrollment()) === 'open');
    try {
      const node = await joinedNode(na);
      const signed = await succession(na, { activatesIn: HOUR, from, to });
      assert.equal((await stage(na, signed)).body.key_held, false);
      na.clock.advance(HOUR);
      assert.equal(outcome(await step(na, 'activate')), '409 authority_key_not_held');

      await restartSigner(keyFile, '--next-key', nextFile);
      await isOpen();
      await activate(na);
      const both = [to.publicKey, from.publicKey];
      const served = async () => {
        const token = await invite(na);
        const joined = await nodeRequest(na, '/join', newKey(), { invite_token: token });
        assert.equal(outcome(joined), '200');
        const crl = (await get(na, '/crl')).body;
        const feed = (await get(na, '/sovereign-revocation-feed')).body;
        return [joined.body, crl, feed].map((record) => signersOf(record, both));
      };
      assert.deepEqual(await served(), [both, both, both]);
      const doomed = { cert_id: node.certId, reason: 'superseded' };
      assert.equal(outcome(await operate(na, '/admin/revoke', doomed)), '200');
      assert.deepEqual(await served(), [both, both, both]);

      // One key is not enough while both sign.
      await restartSigner(nextFile);
      const other = await nodeRequest(na, '/join', newKey(), { invite_token: await invite(na) });
      assert.equal(outcome(other), '503 signer_unavailable');
      await signer.end('SIGKILL');
      signer = await startSigner({ keyFile, address }, ['--next-key', nextFile]);
      await isOpen();

      na = await na.restart();
      assert.deepEqual(await served(), [both, both, both]);
      assert.equal(outcome(await step(na, 'finish')), '200');
      const alone = [to.publicKey];
      assert.deepEqual(await served(), [alone, alone, alone]);
      await restartSigner(nextFile);
      await isOpen();
      assert.deepEqual(await served(), [alone, alone, alone]);
      na = await na.restart();
      assert.deepEqual(await served(), [alone, alone, alone]);
    } finally {
      await na.stop();
      await signer.end('SIGTERM');
    }
  });
}

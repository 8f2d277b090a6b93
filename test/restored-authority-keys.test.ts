/** After restoring a backup from before a succession, the network has its current key [backup-6]. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { signingKeysIn } from '../src/base/signer/authority-signer.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { createStateCheck } from '../src/maintenance/backup/check-state.ts';
import { createBackup } from '../src/maintenance/backup/create.ts';
import { readBackup } from '../src/maintenance/backup/file.ts';
import { applyRestore } from '../src/maintenance/restore/apply.ts';
import type { GivenEvidence } from '../src/maintenance/restore/evidence.ts';
import { planRestore } from '../src/maintenance/restore/plan.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { signRecord, soleSigner } from '../src/protocol/records/signed-record.ts';
import type { SignedSuccession } from '../src/protocol/records/succession-request.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { openSigner } from '../src/server/threads/signer-thread.ts';
import { openLmdbTarget } from '../src/store/lmdb/receiver.ts';
import { openLmdbSource } from '../src/store/lmdb/source.ts';
import type { StateSource } from '../src/store/stream/ports.ts';
import { summarize } from '../src/store/stream/write.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE } from './support/clock.ts';
import { scratchFolder } from './support/folders.ts';
import { get, joinedNode, operate } from './support/requests.ts';
import { DAY, type Draft, keyIn, signedSuccession } from './support/successions.ts';
import { sourceOf } from './support/test-stores.ts';

const NO_EVIDENCE: GivenEvidence = { crls: [], feeds: [], head: null };

suite('restoring after a succession', () => {
  const folder = scratchFolder();
  let na: TestAuthority;
  let genesis: GenesisBlock;
  let backup: string;
  let now: number;
  let restores = 0;

  before(async () => {
    na = await startTestAuthority();
    const node = await joinedNode(na);
    await operate(na, '/admin/revoke', { cert_id: node.certId, reason: 'unspecified' });
    genesis = (await get(na, '/genesis')).body as GenesisBlock;
    now = na.clock.now();
    backup = join(folder.path, 'backup');
    const source = await sourceOf(na);
    await backUp(source, backup);
  });
  after(async () => {
    await na[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  async function backUp(source: StateSource, path: string): Promise<void> {
    const { keySource, genesis, publicKey, keyId } = loadConfig({ dataDir: na.dataDir }, {}, now);
    await createBackup({
      source,
      genesis,
      openSigner: (terms) => openSigner(keySource(), signingKeysIn(terms, { publicKey, keyId })),
      verify: verifySignature,
      path,
      recipients: [],
      now,
    });
    await source.close();
  }

  function plan(evidence: Partial<GivenEvidence>, path = backup, at = now) {
    const given = { ...NO_EVIDENCE, ...evidence };
    return readBackup(path, []).then((bytes) => planRestore(bytes, given, at, verifySignature));
  }

  const signed = (draft: Draft) =>
    signedSuccession(na.dataDir, { genesis, successions: [], now }, draft);

  const chainTo = ({ statement, genesis }: SignedSuccession) => ({
    authorityKeys: { successions: [statement] },
    genesis,
  });

  /** Restores the backup at this time, and returns the folder. */
  async function restored(evidence: Partial<GivenEvidence>, at: number): Promise<string> {
    restores += 1;
    const dataDir = join(folder.path, `restored-${restores}`);
    await applyRestore({
      plan: await plan(evidence, backup, at),
      bytes: await readBackup(backup, []),
      target: openLmdbTarget(dataDir),
      verify: verifySignature,
      runtime: { ...systemRuntime, now: () => at },
      clockTolerance: 5 * MINUTE,
    });
    return dataDir;
  }

  /** The states of the keys after a restore at this time, oldest first. */
  async function keysAfter(evidence: Partial<GivenEvidence>, at: number): Promise<string[]> {
    const dataDir = await restored(evidence, at);
    const source = await openLmdbSource(dataDir);
    try {
      const check = createStateCheck(source.facts.network, verifySignature);
      await summarize(source, check.watch);
      check.finish(source.facts);
      assert.equal(check.lists.crlEntries().length, 1, 'the revoked certificate stays revoked');
      return check.lists.keys().keys.map(({ state }) => state);
    } finally {
      await source.close();
    }
  }

  test('without a chain, the state ends with the key in the backup', async () => {
    assert.deepEqual(await keysAfter({}, now), []);
  });

  for (const { name, draft, later, rolledBack = false, states } of [
    { name: 'a planned change', draft: {}, later: 0, states: ['previous', 'current'] },
    {
      name: 'a planned change whose overlap is over',
      draft: {},
      later: 30 * DAY,
      states: ['retired', 'current'],
    },
    { name: 'a theft', draft: { kind: 'compromise' }, later: 0, states: ['distrusted', 'current'] },
    { name: 'a rollback', draft: {}, later: 0, rolledBack: true, states: ['current', 'previous'] },
    { name: 'a change that has not come yet', draft: { activatesIn: DAY }, later: 0, states: [] },
  ] as const) {
    test(`after ${name}, the keys are ${states.join(', ') || 'those of the backup'}`, async () => {
      const { statement, genesis: next, roll_back } = signed(draft);
      const back = rolledBack ? roll_back : null;
      const successions = [statement, ...(back === null ? [] : [back.statement])];
      const isInForce = states.length > 0;
      const evidence = {
        authorityKeys: { successions },
        ...(isInForce && { genesis: back?.genesis ?? next }),
      };
      assert.deepEqual(await keysAfter(evidence, now + later), states);
    });
  }

  test('lists signed by the next key count if the chain is given', async () => {
    const chain = chainTo(signed({}));
    const crl = (await get(na, '/crl')).body as JsonObject;
    const { signatures: _, ...record } = { ...crl, sequence: 7 } as JsonObject;
    const signer = soleSigner(keyIn(na.dataDir, 'na.next.key'));
    const evidence = { crls: [signRecord(record, signer)] };
    await assert.rejects(plan(evidence), /--crl is not a revocation list signed by the authority/);
    assert.ok((await plan({ ...evidence, ...chain })).crlSequence > 1_000_000);
  });

  test('what a stolen key has signed since the theft does not count', async () => {
    const chain = chainTo(signed({ kind: 'compromise' }));
    const crl = (await get(na, '/crl')).body as JsonObject;
    await assert.rejects(plan({ ...chain, crls: [crl] }), /--crl is not a revocation list/);
    const { signatures: _, ...record } = crl;
    const earlier = { ...record, issued_at: formatInstant(now - 2 * DAY) };
    const key = keyIn(na.dataDir, 'na.key');
    const signedEarlier = signRecord(earlier, soleSigner(key, key.publicKey));
    await plan({ ...chain, crls: [signedEarlier] });
  });

  test('a chain without the genesis block that names its key is refused, and so is one of another network', async () => {
    const { statement, genesis: next } = signed({});
    const authorityKeys = { successions: [statement] };
    const names = /--genesis does not name the current authority key/;
    await assert.rejects(plan({ authorityKeys }), names);
    await assert.rejects(plan({ genesis: next }), names);
    await assert.rejects(
      plan({ authorityKeys: { keys: [] } }),
      /--authority-keys has no list of successions/,
    );
    const altered = { ...statement, overlap_until: formatInstant(now + 90 * DAY) };
    await assert.rejects(
      plan({ authorityKeys: { successions: [altered] }, genesis: next }),
      /--authority-keys cannot be used: Statement 1 of the chain/,
    );
    await assert.rejects(
      plan({ authorityKeys, genesis: { ...next, network_name: 'other' } }),
      /--genesis is not a genesis block of the network of the backup/,
    );
  });

  test('the backup of a state with successions is sound, and a chain that contradicts it is refused', async () => {
    const dataDir = await restored(chainTo(signed({})), now);
    const path = join(folder.path, 'second-backup');
    await backUp(await openLmdbSource(dataDir), path);
    const { manifest, successions } = await plan({}, path);
    assert.equal(manifest.network.authority_public_key, genesis.network_authority.public_key);
    assert.deepEqual(successions, []);
    const other = signed({ overlap: DAY });
    await assert.rejects(
      plan({ authorityKeys: { successions: [other.statement] } }, path),
      /Succession 1 in the backup is not the one in the given chain/,
    );
  });
});

/** A restored state refuses everything that was revoked before, even if that was after the backup. */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { createBackup } from '../src/maintenance/backup/create.ts';
import { readBackup } from '../src/maintenance/backup/file.ts';
import { applyRestore } from '../src/maintenance/restore/apply.ts';
import { planRestore } from '../src/maintenance/restore/plan.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { openSigner } from '../src/server/threads/signer-thread.ts';
import { openLmdbTarget } from '../src/store/lmdb/receiver.ts';
import { HISTORY, playAndRestore } from './restoring/histories.ts';
import { WITHIN_FOLDERS } from './restoring/places.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import { scratchFolder } from './support/folders.ts';
import {
  get,
  heartbeat,
  joinedNode,
  operate,
  outcome,
  sendSigned,
  signedByNode,
} from './support/requests.ts';
import { beat, openSession } from './support/sessions.ts';
import { LMDB_ONLY, sourceOf } from './support/test-stores.ts';

const HISTORIES = 30;

test(`${HISTORIES} random histories are restored without un-revoking anything`, () =>
  fc.assert(
    fc.asyncProperty(HISTORY, (history) => playAndRestore(history, WITHIN_FOLDERS)),
    { numRuns: HISTORIES },
  ));

test(
  'a client that signs too early after a restore learns until when, and is served from then on',
  LMDB_ONLY,
  async () => {
    await using folder = scratchFolder();
    await using lost = await startTestAuthority();
    const node = await joinedNode(lost, { name: 'web-1' });
    const dataDir = await restoredFrom(lost, folder.path);
    const until = formatInstant(lost.clock.now() + 5 * MINUTE);
    lost.clock.advance(MINUTE);
    await using na = await startTestAuthority({ dataDir, clock: lost.clock });
    const invite = () => operate(na, '/admin/invite');
    for (const refused of [await invite(), await heartbeat(na, node)]) {
      assert.equal(outcome(refused), '503 restored_recently');
      assert.equal(refused.headers.get('retry-after'), '241');
      assert.deepEqual(refused.body.error.details, {
        accepts_signed_after: until,
        retry_after: 241,
      });
    }
    const forged = await operate(
      { ...na, privileged: { ...na.privileged, key: node.key } },
      '/admin/invite',
    );
    assert.equal(outcome(forged), '401 admin_auth_failed', 'a stranger learns no more than before');
    assert.equal((await get(na, '/readyz')).body.accepts_signed_after, until);
    const sentence = `The state was restored: requests signed before ${until} are refused.`;
    assert.ok((await get(na, '/dashboard.json')).body.warnings.includes(sentence));
    const shown = `requests signed before <time datetime="${until}">`;
    assert.ok((await get(na, '/dashboard')).text.includes(shown));

    na.clock.advance(4 * MINUTE + SECOND);
    assert.equal(outcome(await invite()), '200');
    assert.equal(outcome(await heartbeat(na, node)), '200');
    const row = await operate(na, `/admin/certificates/${node.certId}`, {}, { method: 'GET' });
    assert.equal(row.body.name, 'web-1');
    assert.equal((await get(na, '/readyz')).body.accepts_signed_after, undefined);
    const older = await get(na, '/crl?since=0');
    assert.equal(outcome(older), '410 delta_unavailable');
    const { sequence } = (await get(na, '/crl')).body;
    assert.deepEqual(older.body.error.details, { sequence });
  },
);

test(
  'a heartbeat session continues after a restore, in which nothing made before counts',
  LMDB_ONLY,
  async () => {
    await using folder = scratchFolder();
    await using lost = await startTestAuthority();
    const { clock } = lost;
    const [quiet, alive] = [await joinedNode(lost), await joinedNode(lost)];
    const sessions = [await openSession(lost, quiet), await openSession(lost, alive)] as const;
    const [ofQuiet, ofAlive] = sessions;
    const dataDir = await restoredFrom(lost, folder.path);
    const late = await joinedNode(lost);
    const ofLate = await openSession(lost, late);
    // Signed by clocks that are ahead, and accepted by the authority whose state is lost.
    const before = { instant: formatInstant(clock.now() + 4 * MINUTE) };
    for (const session of [...sessions, ofLate]) {
      assert.equal(outcome(await beat(lost, session, before)), '200');
    }
    clock.advance(MINUTE);
    await using na = await startTestAuthority({ dataDir, clock });
    for (const session of sessions) {
      assert.equal(outcome(await beat(na, session, before)), '503 restored_recently');
      assert.equal(outcome(await beat(na, session)), '503 restored_recently');
    }
    clock.advance(4 * MINUTE + SECOND);
    for (const session of sessions) {
      assert.equal(outcome(await beat(na, session, before)), '503 restored_recently');
    }
    assert.equal(outcome(await beat(na, ofAlive)), '200');
    assert.equal(outcome(await beat(na, ofLate)), '403 certificate_not_found');

    // The clock is set back long after the restore.
    clock.advance(10 * MINUTE);
    await na.stop();
    clock.advance(-12 * MINUTE);
    await using again = await startTestAuthority({ dataDir, clock });
    assert.equal(outcome(await beat(again, ofQuiet, before)), '503 restored_recently');
  },
);

test(
  'a signed heartbeat from before a restore never counts, however long after that a clock is set back',
  LMDB_ONLY,
  async () => {
    await using folder = scratchFolder();
    await using lost = await startTestAuthority();
    const { clock } = lost;
    const node = await joinedNode(lost);
    const dataDir = await restoredFrom(lost, folder.path);
    const ahead = { timestamp: formatInstant(clock.now() + 4 * MINUTE) };
    const body = { cert_id: node.certId, status: 'healthy' };
    const captured = signedByNode(lost, '/heartbeat', node.key, body, ahead);
    assert.equal(outcome(await sendSigned(lost, captured)), '200');
    // Two runs, so that the last one stops cleanly, with nothing left to pass on from a crash.
    for (let starts = 0; starts < 2; starts += 1) {
      await using na = await startTestAuthority({ dataDir, clock });
      clock.advance(11 * MINUTE);
      await na.stop();
    }
    clock.advance(-22 * MINUTE);
    await using na = await startTestAuthority({ dataDir, clock });
    assert.equal(outcome(await sendSigned(na, captured)), '503 restored_recently');
    clock.advance(6 * MINUTE + SECOND);
    assert.equal(outcome(await heartbeat(na, node)), '200');
    assert.equal(outcome(await sendSigned(na, captured)), '503 restored_recently');
  },
);

/** A folder with a state restored from a backup of this authority, without any later evidence. */
async function restoredFrom(na: TestAuthority, folder: string): Promise<string> {
  await na.flush();
  const now = na.clock.now();
  const { genesis, keySource, publicKey, keyId } = loadConfig({ dataDir: na.dataDir }, {}, now);
  const path = join(folder, 'backup');
  const source = await sourceOf(na);
  const keys = { current: { publicKey, keyId }, previous: null };
  await createBackup({
    ...{ source, genesis, path, now },
    openSigner: () => openSigner(keySource(), keys),
    recipients: [],
    verify: verifySignature,
  });
  await source.close();
  const dataDir = join(folder, 'restored');
  const evidence = { crls: [], feeds: [], head: null };
  await applyRestore({
    plan: await planRestore(await readBackup(path, []), evidence, na.clock.now(), verifySignature),
    bytes: await readBackup(path, []),
    target: openLmdbTarget(dataDir),
    verify: verifySignature,
    runtime: { ...systemRuntime, now: na.clock.now },
    clockTolerance: 5 * MINUTE,
  });
  for (const name of ['keys', 'mesh-na.json', 'genesis.json']) {
    cpSync(join(na.dataDir, name), join(dataDir, name), { recursive: true });
  }
  return dataDir;
}

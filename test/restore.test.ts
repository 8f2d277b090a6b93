/** A restored state refuses everything that was revoked before, even if that was after the backup, and has the current key. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, createReadStream, readdirSync, readFileSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import fc from 'fast-check';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { signingKeysIn } from '../src/base/signer/authority-signer.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { readJsonUrl } from '../src/cli/connection/server.ts';
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
import { HISTORY, playAndRestore } from './restoring/histories.ts';
import { WITHIN_FOLDERS } from './restoring/places.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { runProgram } from './support/child-server.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import { scratchFolder } from './support/folders.ts';
import { type Behavior, floods, listen, says } from './support/odd-server.ts';
import {
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  operate,
  outcome,
  type SignedRequest,
  sendSigned,
  signedByNode,
} from './support/requests.ts';
import { beat, openSession } from './support/sessions.ts';
import { DAY, type Draft, keyIn, signedSuccession } from './support/successions.ts';
import { LMDB_ONLY, sourceOf } from './support/test-stores.ts';
import { makeTlsPair } from './support/tls-files.ts';

const HISTORIES = 15;

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

test('a join that is sent again after a restore gets its first answer', LMDB_ONLY, async () => {
  await using folder = scratchFolder();
  await using lost = await startTestAuthority();
  const { clock } = lost;
  const joins: (readonly [SignedRequest, string])[] = [];
  for (let minute = 0; minute < 3; minute += 1) {
    const body = { invite_token: await invite(lost) };
    const ahead = { timestamp: formatInstant(clock.now() + 2 * MINUTE) };
    const join = signedByNode(lost, '/join', newKey(), body, ahead);
    joins.push([join, (await sendSigned(lost, join)).text]);
    // Spends a nonce later, which may be forgotten earlier, and has no answer that is kept.
    await operate(lost, '/admin/certificates', {}, { method: 'GET' });
    clock.advance(MINUTE);
  }
  const dataDir = await restoredFrom(lost, folder.path);
  await using na = await startTestAuthority({ dataDir, clock });
  for (const [{ init, ...join }, first] of joins) {
    const headers = { ...init.headers, 'X-Mesh-Retry': '1' };
    const repeated = await sendSigned(na, { ...join, init: { ...init, headers } });
    assert.equal(repeated.text, first);
  }
});

test(
  'a backup that is replaced after the restore was planned leaves neither state nor lock',
  LMDB_ONLY,
  async () => {
    await using folder = scratchFolder();
    await using na = await startTestAuthority();
    const order = await restoreOf(na, join(folder.path, 'backup'));
    await joinedNode(na);
    const later = join(folder.path, 'later');
    await backUp(na, later);
    const dataDir = join(folder.path, 'restored');
    for (const [bytes, problem] of [
      [
        await readBackup(later, []),
        /^Error: The backup has changed since the restore was planned$/,
      ],
      [createReadStream('/dev/null'), /^Error: The backup is damaged: it is empty$/],
    ] as const) {
      const target = openLmdbTarget(dataDir);
      await assert.rejects(applyRestore({ ...order, bytes, target }), problem);
      assert.deepEqual(readdirSync(dataDir), ['mesh-na.lock']);
    }
    await applyRestore({ ...order, target: openLmdbTarget(dataDir) });
  },
);

/** A folder with a state restored from a backup of this authority, without any later evidence. */
async function restoredFrom(na: TestAuthority, folder: string): Promise<string> {
  const dataDir = join(folder, 'restored');
  const order = await restoreOf(na, join(folder, 'backup'));
  await applyRestore({ ...order, target: openLmdbTarget(dataDir) });
  for (const name of ['keys', 'mesh-na.json', 'genesis.json']) {
    cpSync(join(na.dataDir, name), join(dataDir, name), { recursive: true });
  }
  return dataDir;
}

/** A restore of what the authority has now, from a backup that is taken at this path. */
async function restoreOf(na: TestAuthority, path: string) {
  await backUp(na, path);
  const evidence = { crls: [], feeds: [], head: null };
  return {
    plan: await planRestore(await readBackup(path, []), evidence, na.clock.now(), verifySignature),
    bytes: await readBackup(path, []),
    verify: verifySignature,
    runtime: { ...systemRuntime, now: na.clock.now },
    clockTolerance: 5 * MINUTE,
  };
}

async function backUp(na: TestAuthority, path: string): Promise<void> {
  await na.flush();
  const now = na.clock.now();
  const { genesis, keySource, publicKey, keyId } = loadConfig({ dataDir: na.dataDir }, {}, now);
  const source = await sourceOf(na);
  const keys = { current: { publicKey, keyId }, previous: null };
  await createBackup({
    ...{ source, genesis, path, now },
    openSigner: () => openSigner(keySource(), keys),
    recipients: [],
    verify: verifySignature,
  });
  await source.close();
}

// After restoring a backup from before a succession, the network has its current key [backup-6].

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

// `restore plan` reads records from URLs whose servers may answer anything.

const BOUNDS = { longestMs: 300, mostBytes: 100_000, mostValues: 1000 };
/** For servers that are abandoned for another reason than time, because a busy machine may take longer. */
const NO_HURRY = { ...BOUNDS, longestMs: 60_000 };
const TOO_LONG = /it took longer than 0.3 s$/;
const OK = 'HTTP/1.1 200 OK\r\n';

const drips = (socket: Socket): void => {
  socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n`);
  const timer = setInterval(() => socket.write('1\r\n \r\n'), 10);
  socket.once('close', () => clearInterval(timer));
};

const CASES: readonly (readonly [what: string, does: Behavior, reason: RegExp])[] = [
  ['nothing', () => undefined, TOO_LONG],
  ['half of a head', says(`${OK}X-A:`), TOO_LONG],
  ['a body that drips', drips, TOO_LONG],
  ['a head without an end', floods(OK, `X-A: ${'a'.repeat(100)}\r\n`), /Header overflow/],
  [
    'a body without an end',
    floods(`${OK}Transfer-Encoding: chunked\r\n\r\n`, '5\r\n     \r\n'),
    /the answer has more than 100000 bytes$/,
  ],
  [
    'more values than a list has',
    says(`${OK}Connection: close\r\nContent-Length: 3005\r\n\r\n[${'[],'.repeat(1000)}[]] `),
    /There are too many values/,
  ],
  [
    'an error',
    says('HTTP/1.1 500 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'),
    /the server answered 500$/,
  ],
  [
    'a way to another place',
    says('HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n'),
    /unexpected redirect$/,
  ],
  [
    'no JSON',
    says(`${OK}Connection: close\r\nContent-Length: 6\r\n\r\n<html>`),
    /A value is expected at position 0$/,
  ],
  ['the end of the connection', (socket) => socket.destroy(), /hang up|ECONNRESET/],
];

for (const [what, does, reason] of CASES) {
  test(`a server that answers with ${what} is abandoned within the limits, which are named`, async () => {
    await using server = await listen(does);
    const bounds = reason === TOO_LONG ? BOUNDS : NO_HURRY;
    await assert.rejects(readJsonUrl(server.url, undefined, bounds), (error: Error) => {
      assert.match(error.message, /^http:\S+ cannot be read: [^\n]+$/);
      assert.match(error.message, reason);
      return true;
    });
    await server.allClosed();
  });
}

test('where no one can be asked, one sentence says what a restore must be given', async () => {
  const server = await listen(() => undefined);
  await server[Symbol.asyncDispose]();
  const args = ['restore', 'plan', '--backup', '/nothing', '--crl', server.url];
  const { code, stderr } = await runProgram(args);
  assert.equal(code, 5, stderr);
  assert.match(stderr, /^mesh-na: http:\S+ cannot be read: connect ECONNREFUSED [^\n]+\n$/);
});

test('a list behind a certificate of a private authority is read with --ca', async (t) => {
  await using folder = scratchFolder();
  const { certFile, keyFile } = makeTlsPair(folder.path, 'node');
  const pair = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  const server = createSecureServer(pair, (_request, response) => void response.end('{}'));
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/crl`;
  const args = ['restore', 'plan', '--backup', join(folder.path, 'none'), '--crl', url];
  const [unknown, trusted] = await Promise.all([
    runProgram(args),
    runProgram([...args, '--ca', certFile]),
  ]);
  assert.equal(unknown.code, 5);
  assert.match(unknown.stderr, /cannot be read: self-signed certificate/);
  assert.equal(trusted.code, 3);
  assert.match(trusted.stderr, /none cannot be read \(ENOENT\)/);
});

/** The audit log: each event with its details, the length of texts in it, and how much of it strangers can cause. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { suite, test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import { createRefusalAudit } from '../src/authority/engine/refusal-audit.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson, jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { type AuditEntry, GENESIS_HASH } from '../src/store/store.ts';
import { describe, envelopeOf, members, register, remove } from './support/agents.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import {
  auditEvents,
  freshNonce,
  get,
  heartbeat,
  invite,
  joinedNode,
  joinedNodes,
  newKey,
  nodeRequest,
  type OperatorCall,
  operate,
  outcome,
  type Received,
  type SignedRequest,
  send,
  sendSigned,
  signedByNode,
} from './support/requests.ts';
import { auditEntriesOf } from './support/test-stores.ts';
import {
  attest,
  audited,
  IMPORT,
  post,
  revokeAttestation,
  revokeTreaty,
  signedBy,
  sovereign,
} from './support/trust.ts';

/** For tests that leave nothing behind that would affect the others. */
const shared = sharedAuthority();

const remote_addr = '127.0.0.1';

type Named = readonly [event_type: string, details: JsonObject];

/** What an action adds to the log: names and details of the new entries. */
async function addedBy(na: TestAuthority, action: () => Promise<unknown>): Promise<Named[]> {
  const before = (await auditEntriesOf(na)).length;
  await action();
  return (await auditEntriesOf(na))
    .slice(before)
    .map(({ event_type, details }) => [event_type, details]);
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

suite('every event is stored with its details', () => {
  test('as it is logged: once for what changes something, and for nothing else', async () => {
    await using na = await startTestAuthority();
    const key = newKey();
    const beta = sovereign('beta');
    const keys = [beta.key.publicKey];
    const issuer = { sovereign_id: 'beta', public_keys: keys };
    const feed = beta.feed(na.clock.now(), 3, { revoked_attestation_ids: ['a-1', 'a-2'] });
    const imported = { feed, issuer_public_keys: keys };
    const treaty = { subject_sovereign_id: 'beta', subject_public_keys: keys };
    const terms = { roles: ['role:anchor'], count: 3, batch: 'field-team-7' };
    const { tokens } = (await operate(na, '/admin/invite', terms)).body;
    const invite_token: string = tokens[0].token_id;
    const { cert_id } = (await nodeRequest(na, '/join', key, { invite_token })).body;
    const node = { key, certId: cert_id };
    await heartbeat(na, node);
    await nodeRequest(na, '/renew', key, { cert_id });
    await register(na, describe(na, key));
    await remove(na, key, envelopeOf(na, key));
    await nodeRequest(na, '/heartbeat', newKey(), { cert_id });
    await nodeRequest(na, '/renew', newKey(), { cert_id });
    await heartbeat(na, node, { signedBy: newKey() });
    await operate(na, '/admin/policy', { policy_id: 'p-1' });
    await operate(na, '/admin/policy', { policy_id: 'p-2' });
    await operate(na, '/admin/policy/rollback', { policy_id: 'p-1' });
    const { attestation_id } = (await attest(na)).body;
    await operate(na, '/admin/recognition-policy', {
      recognition_policy: { local_sovereign_id: 'alpha', recognized_issuers: [issuer] },
    });
    const { treaty_id } = (await operate(na, '/admin/recognition-treaties', treaty)).body;
    await operate(na, IMPORT, imported);
    await operate(na, IMPORT, imported);
    for (const reason of ['key_compromise', 'superseded']) {
      await operate(na, '/admin/revoke', { cert_id, reason });
      await revokeAttestation(na, attestation_id, { reason });
      await operate(na, '/admin/operator-keys/ops-standard/revoke', { reason });
    }
    await revokeTreaty(na, treaty_id, { reason: 'over' });
    await nodeRequest(na, '/join', key, { invite_token });
    await operate(na, '/admin/policy/rollback', { policy_id: 'unknown' });
    await revokeAttestation(na, 'unknown');
    await operate(na, '/admin/operator-keys/unknown/revoke');
    await operate(na, '/admin/operator-keys/ops-privileged/revoke');
    const stored = await auditEntriesOf(na);
    assert.deepEqual(
      stored.map(({ event_type }) => event_type),
      [
        ...['invite_created', 'invite_created', 'invite_created'],
        ...['certificate_issued', 'certificate_renewed', 'agent_registered', 'agent_deregistered'],
        ...['heartbeat_rejected', 'renewal_rejected', 'node_auth_failed'],
        ...['policy_published', 'policy_published', 'policy_rolled_back'],
        ...['membership_attestation_issued', 'recognition_policy_saved'],
        ...['recognition_treaty_issued', 'sovereign_revocation_feed_imported'],
        ...['sovereign_revocation_feed_rejected', 'certificate_revoked', 'certificate_revoked'],
        ...['membership_attestation_revoked', 'operator_key_revoked'],
        ...['recognition_treaty_revoked', 'join_rejected'],
      ],
    );
    assert.deepEqual(
      stored.map(({ event_type, details }) => ({ type: event_type, details })),
      auditEvents(na),
    );
    assert.deepEqual(
      stored.slice(0, 3).map(({ details }) => details),
      tokens.map(({ token_id }: { token_id: string }) => ({
        token_fingerprint: sha256(token_id).slice(0, 16),
        ...{ roles: terms.roles, batch: terms.batch, remote_addr },
      })),
      'a fingerprint, and never the token',
    );
  });

  test('admin_auth_failed, with the true reason, the route, and the nonce of a replay', async () => {
    await using na = await startTestAuthority();
    await operate(na, '/admin/operator-keys/ops-standard/revoke', {});
    const nonce = freshNonce();
    const call = (options: OperatorCall) => operate(na, '/admin/invite', {}, options);
    const without = (name: string): OperatorCall => ({ alter: (headers) => delete headers[name] });
    const added = await addedBy(na, async () => {
      await call(without('X-Admin-Nonce'));
      await call({ nonce: 'n'.repeat(257) });
      await call({ operator: { keyId: 'stranger', key: newKey() } });
      await call({ operator: na.standard });
      await call({ timestamp: 'yesterday' });
      await call({ timestamp: formatInstant(na.clock.now() - 300 * SECOND - 1) });
      await call({ operator: { keyId: 'ops-privileged', key: newKey() } });
      await call({ nonce });
      await call({ nonce });
      await operate(na, '/nodes', {}, { method: 'GET', timestamp: 'yesterday' });
    });
    const ops = 'ops-privileged';
    const failed = (key_id: string, reason: string, more: JsonObject = {}) => [
      'admin_auth_failed',
      { key_id, reason, scope: '/admin/invite', remote_addr, ...more },
    ];
    assert.deepEqual(
      added.filter(([type]) => type === 'admin_auth_failed'),
      [
        failed(ops, 'missing_headers'),
        failed(ops, 'oversized_headers'),
        failed('stranger', 'unknown_key'),
        failed('ops-standard', 'revoked_key'),
        failed(ops, 'invalid_timestamp'),
        failed(ops, 'stale_timestamp'),
        failed(ops, 'invalid_signature'),
        failed(ops, 'nonce_replay', { nonce }),
        failed(ops, 'invalid_timestamp', { scope: '/nodes' }),
      ],
    );
  });

  test('admin_authz_denied, with the tier of the key and the tier required', async () => {
    const na = await shared();
    const body = { cert_id: 'any', reason: 'unspecified' };
    const [[type, { reason, ...details } = {}] = [], ...others] = await addedBy(na, () =>
      operate(na, '/admin/revoke', body, { operator: na.standard }),
    );
    assert.deepEqual([type, typeof reason, others], ['admin_authz_denied', 'string', []]);
    assert.deepEqual(details, {
      key_id: 'ops-standard',
      scope: '/admin/revoke',
      holder_tier: 'standard',
      required_tier: 'privileged',
      remote_addr,
    });
  });

  test('the sequence of a feed keeps every digit', async () => {
    await using na = await startTestAuthority();
    const beta = sovereign('beta');
    const keys = { issuer_public_keys: [beta.key.publicKey] };
    for (const sequence of [2n ** 53n, 2n ** 64n, 2n ** 200n]) {
      const feed = beta.feed(na.clock.now(), sequence);
      assert.equal(outcome(await operate(na, IMPORT, { feed, ...keys })), '200');
      const { details = {} } = (await auditEntriesOf(na)).at(-1) ?? {};
      assert.match(canonicalJson(details), new RegExp(`"sequence":"?${sequence}\\b`));
    }
    await using again = await na.restart();
    assert.equal((await verifyAuditChain(await auditEntriesOf(again), GENESIS_HASH)).valid, true);
  });

  test('an entry names the operator key that caused it, and none if no operator did', async () => {
    await using na = await startTestAuthority();
    const token = await invite(na);
    const key = newKey();
    const { body } = await nodeRequest(na, '/join', key, { invite_token: token });
    await operate(na, '/admin/revoke', { cert_id: body.cert_id }, { operator: na.standard });
    await operate(na, '/admin/revoke', { cert_id: body.cert_id });
    const unproven = {
      alter: (headers: Record<string, string>) => {
        headers['X-Admin-Signature'] = 'A'.repeat(86).concat('==');
      },
    };
    await operate(na, '/admin/revoke', { cert_id: body.cert_id }, unproven);
    await using again = await na.restart();
    await operate(again, '/admin/policy');
    const entries = await auditEntriesOf(again);
    assert.deepEqual(
      entries.map(({ event_type, actor_key_id }) => [event_type, actor_key_id]),
      [
        ['invite_created', 'ops-standard'],
        ['certificate_issued', undefined],
        ['admin_authz_denied', 'ops-standard'],
        ['certificate_revoked', 'ops-privileged'],
        ['admin_auth_failed', undefined],
        ['policy_published', 'ops-privileged'],
      ],
    );
    assert.equal((await verifyAuditChain(entries, GENESIS_HASH)).valid, true);
  });

  test('nothing for reads, verifications, heartbeats, malformed requests and unknown invites', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
    const treaty = beta.treaty(na.clock.now(), gamma);
    const added = await addedBy(na, async () => {
      const verified = { treaty, issuer_public_keys: [beta.key.publicKey] };
      const { body } = await post(na, '/recognition-treaties/verify', verified);
      assert.equal(body.accepted, true);
      for (const path of ['/healthz', '/readyz', '/health', '/metrics', '/genesis', '/policy']) {
        await get(na, path);
      }
      await get(na, '/crl');
      await get(na, '/nodes');
      await get(na, '/nowhere');
      await operate(na, '/nodes', {}, { method: 'GET' });
      await heartbeat(na, node);
      await send(na, 'POST', '/heartbeat', { body: '{' });
      await send(na, 'POST', '/join', { body: '{}' });
      await operate(na, '/admin/invite', { count: 0 });
      await nodeRequest(na, '/join', newKey(), { invite_token: 'never made' });
    });
    assert.deepEqual(added, []);
  });
});

suite('the chain', () => {
  test('is valid from the first entry to the last, across restarts, and keeps the order of simultaneous events', async () => {
    await using na = await startTestAuthority();
    const empty = await verifyAuditChain(await auditEntriesOf(na), GENESIS_HASH);
    assert.deepEqual(empty, { valid: true, length: 0, head: GENESIS_HASH });
    await joinedNode(na);
    const first = await verifyAuditChain(await auditEntriesOf(na), GENESIS_HASH);
    assert.deepEqual(first, { valid: true, length: 2, head: (await auditEntriesOf(na))[1]?.hash });
    await using again = await na.restart();
    await joinedNode(again);
    await using third = await again.restart();
    const nodes = await joinedNodes(third, 25);
    const answers = await Promise.all(
      nodes.map(({ certId }) => operate(third, '/admin/revoke', { cert_id: certId })),
    );
    for (const answer of answers) assert.equal(outcome(answer), '200');
    const entries = await auditEntriesOf(third);
    const head = entries.at(-1)?.hash;
    const verdict = await verifyAuditChain(entries, GENESIS_HASH);
    assert.deepEqual(verdict, { valid: true, length: 79, head });
    assert.equal(new Set(entries.map(({ event_id }) => event_id)).size, 79);
    const revoked = entries.filter(({ event_type }) => event_type === 'certificate_revoked');
    assert.deepEqual(
      revoked.map(({ details }) => details.crl_sequence),
      Array.from({ length: 25 }, (_, i) => i + 1),
      'each effect next to its own entry',
    );
  });

  test('links each entry to the one before by the SHA-256 of its canonical text', async () => {
    await using na = await startTestAuthority();
    await joinedNode(na, { roles: ['role:a'] });
    await nodeRequest(na, '/heartbeat', newKey(), { cert_id: 'Zürich ✓ 😀 \u0000 "\\' });
    let previous = '0'.repeat(64);
    for (const entry of await auditEntriesOf(na)) {
      const byOperator = entry.event_type === 'invite_created';
      assert.deepEqual(Object.keys(entry).sort(), [
        ...(byOperator ? ['actor_key_id'] : []),
        'created_at',
        'details',
        'event_id',
        'event_type',
        'hash',
        'prev_hash',
      ]);
      assert.match(entry.event_id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      assert.equal(entry.created_at, formatInstant(na.clock.now()));
      assert.equal(entry.prev_hash, previous);
      const { hash, ...rest } = entry;
      assert.equal(hash, sha256(canonicalJson(rest)));
      previous = hash;
    }
    assert.equal((await auditEntriesOf(na)).at(-1)?.details.cert_id, 'Zürich ✓ 😀 \u0000 "\\');
  });

  const tampered: readonly (readonly [
    string,
    (entries: AuditEntry[]) => AuditEntry[],
    number,
    string,
  ])[] = [
    ['an entry removed', (entries) => entries.toSpliced(2, 1), 3, 'broken_link'],
    ['the first entry removed', (entries) => entries.slice(1), 1, 'broken_link'],
    ['two entries exchanged', ([a, b, c, ...rest]) => kept([a, c, b, ...rest]), 2, 'broken_link'],
    ['an entry repeated', ([a, b, ...rest]) => kept([a, b, b, ...rest]), 3, 'broken_link'],
    ['a type altered', alterThird({ event_type: 'certificate_issued' }), 3, 'altered_entry'],
    ['a time altered', alterThird({ created_at: '2020-01-01T00:00:00Z' }), 3, 'altered_entry'],
    ['an id altered', alterThird({ event_id: 'other' }), 3, 'altered_entry'],
    ['a hash altered', alterThird({ hash: 'f'.repeat(64) }), 3, 'altered_entry'],
    ['a link altered', alterThird({ prev_hash: 'f'.repeat(64) }), 3, 'broken_link'],
    ['a detail altered', alterDetails({ remote_addr: '192.0.2.1' }), 3, 'altered_entry'],
    ['a detail added', alterDetails({ added: true }), 3, 'altered_entry'],
    ['details emptied', alterThird({ details: {} }), 3, 'altered_entry'],
    ['an entry altered and hashed anew', rehashThird, 4, 'broken_link'],
  ];

  test('reveals what was altered, and where', async () => {
    await using na = await startTestAuthority();
    for (let nodes = 0; nodes < 3; nodes += 1) await joinedNode(na);
    const entries = await auditEntriesOf(na);
    assert.equal((await verifyAuditChain(entries, GENESIS_HASH)).valid, true);
    const exported = entries.map((entry) => JSON.parse(jsonText({ ...entry })) as AuditEntry);
    assert.equal((await verifyAuditChain(exported, GENESIS_HASH)).valid, true);
    const cut = await verifyAuditChain(entries.slice(0, -1), GENESIS_HASH);
    assert.deepEqual(cut, { valid: true, length: 5, head: entries[4]?.hash });
    for (const [what, tamper, position, reason] of tampered) {
      const verdict = await verifyAuditChain(tamper(entries), GENESIS_HASH);
      assert.deepEqual(verdict, { valid: false, position, reason }, what);
    }
  });
});

test('no secret reaches the audit log: tokens, nonces of accepted requests, signatures, key seeds', async () => {
  await using na = await startTestAuthority();
  const token = await invite(na);
  const [key, nonce] = [newKey(), freshNonce()];
  let signature = '';
  const keep = (body: Record<string, unknown>) => {
    signature = String(body.signature);
  };
  await nodeRequest(na, '/join', key, { invite_token: token }, { nonce, alter: keep });
  await nodeRequest(na, '/join', key, { invite_token: token }, { signedBy: newKey() });
  const all = JSON.stringify(await auditEntriesOf(na));
  assert.notEqual(signature, '');
  for (const secret of [token, nonce, signature]) assert.equal(all.includes(secret), false);
});

function alterThird(change: Partial<AuditEntry>): (entries: AuditEntry[]) => AuditEntry[] {
  return (entries) => entries.map((entry, i) => (i === 2 ? { ...entry, ...change } : entry));
}

function alterDetails(change: JsonObject): (entries: AuditEntry[]) => AuditEntry[] {
  return (entries) =>
    entries.map((entry, i) =>
      i === 2 ? { ...entry, details: { ...entry.details, ...change } } : entry,
    );
}

/** An attacker who knows how entries are hashed, but cannot rewrite all later entries. */
function rehashThird(entries: AuditEntry[]): AuditEntry[] {
  return alterDetails({ remote_addr: '192.0.2.1' })(entries).map((entry, i) => {
    if (i !== 2) return entry;
    const { hash: _, ...rest } = entry;
    return { ...rest, hash: sha256(canonicalJson(rest)) };
  });
}

function kept(entries: readonly (AuditEntry | undefined)[]): AuditEntry[] {
  return entries.filter((entry) => entry !== undefined);
}

// The audit entries of refused unauthenticated requests.

const DEFAULT = { MESH_RATE_LIMIT_AUTH_FAILURES: '10/60' };
const BOGUS = {
  'X-Admin-Key-Id': 'nobody',
  'X-Admin-Timestamp': 'now',
  'X-Admin-Nonce': 'n',
  'X-Admin-Signature': 's',
};

/** Sends the request this many times, some of them concurrently; all answers must be alike. */
async function flood(na: TestAuthority, request: SignedRequest, times: number): Promise<string> {
  const outcomes = new Set<string>();
  const silent = { ...na, settle: () => Promise.resolve() };
  for (let sent = 0; sent < times; sent += 50) {
    const answers: Received[] = await Promise.all(
      Array.from({ length: 50 }, () => sendSigned(silent, request)),
    );
    for (const answer of answers) outcomes.add(outcome(answer));
  }
  await na.settle();
  return [...outcomes].join();
}

function bogusRoster(): SignedRequest {
  return { method: 'GET', path: '/nodes', init: { headers: BOGUS } };
}

function unknownNode(na: TestAuthority): SignedRequest {
  return signedByNode(na, '/heartbeat', newKey(), { cert_id: 'unknown' });
}

async function entriesOf(
  na: TestAuthority,
): Promise<{ type: string; details: Record<string, unknown> }[]> {
  return (await auditEntriesOf(na)).map(({ event_type, details }) => ({
    type: event_type,
    details: details as Record<string, unknown>,
  }));
}

test('700 bogus requests leave a few entries, and a summary that counts the rest', async () => {
  await using na = await startTestAuthority({ environment: DEFAULT });
  assert.equal(await flood(na, bogusRoster(), 400), '401 admin_auth_failed');
  assert.equal(await flood(na, unknownNode(na), 300), '403 certificate_not_found');
  na.clock.advance(MINUTE);
  await na.flush();
  const entries = await entriesOf(na);
  assert.ok(entries.length < 50, `${entries.length} entries`);
  const about = { remote_addr: '127.0.0.1' };
  assert.deepEqual(
    entries.filter(({ type }) => type === 'refusals_summarized').map(({ details }) => details),
    [
      { ...about, event: 'admin_auth_failed', reason: 'unknown_key', count: 390 },
      { ...about, event: 'heartbeat_rejected', reason: 'certificate_not_found', count: 300 },
    ],
  );
  assert.equal(entries.filter(({ type }) => type === 'admin_auth_failed').length, 10);
  const audited = na.logLines.filter((line) => line.includes('mesh.audit'));
  assert.equal(audited.length, entries.length);
  const metrics = (await get(na, '/metrics')).text;
  const counter = 'mesh_na_auth_failed_total{kind="operator",reason="unknown_key"} 400';
  assert.ok(metrics.includes(counter));
});

test('the counts of the last minute are summarized at the stop', async () => {
  await using na = await startTestAuthority({ environment: DEFAULT });
  await flood(na, bogusRoster(), 50);
  await na.flush();
  assert.equal((await entriesOf(na)).length, 10);
  await na.stop();
  const { type, details } = (await entriesOf(na)).at(-1) ?? {};
  assert.deepEqual([type, details?.count], ['refusals_summarized', 40]);
});

test('after a minute the first refusals of a source have entries of their own again', async () => {
  await using na = await startTestAuthority({ environment: DEFAULT });
  await flood(na, bogusRoster(), 50);
  na.clock.advance(61 * SECOND);
  await na.flush();
  await flood(na, bogusRoster(), 50);
  const singles = (await entriesOf(na)).filter(({ type }) => type === 'admin_auth_failed');
  assert.equal(singles.length, 20);
});

test('refusals from any number of sources cannot make the log grow either', () => {
  const refusals = createRefusalAudit({ count: 10, windowMs: MINUTE }, () => 0);
  let singles = 0;
  for (let i = 0; i < 50_000; i += 1) {
    const details = { reason: 'unknown_key', remote_addr: `2001:db8::${(i % 5000).toString(16)}` };
    if (refusals.isSingle('admin_auth_failed', details)) singles += 1;
  }
  assert.ok(singles <= 1010, `${singles} entries`);
  const summaries = refusals.takeSummaries(true);
  assert.ok(summaries.length <= 101, `${summaries.length} summaries`);
  const total = summaries.reduce((sum, { count }) => sum + count, singles);
  assert.equal(total, 50_000);
});

test('AUTH_FAILURES=off audits every refusal', async () => {
  await using na = await startTestAuthority({
    environment: { MESH_RATE_LIMIT_AUTH_FAILURES: 'off' },
  });
  await flood(na, bogusRoster(), 50);
  assert.equal((await entriesOf(na)).length, 50);
});

// Length limits for texts from callers, in records and in the audit log.

test('texts of a descriptor have at most 1,024 characters, and the whole of it 64 KiB', async () => {
  const na = await shared();
  const { key } = await joinedNode(na);
  const registering = (changes: JsonObject) =>
    register(na, signedBy({ ...members(na, key), ...changes }, key));
  const longest = 'a'.repeat(1024);
  const endpoint = { host: longest, port: 1, scheme: longest };
  const accepted = { agent_id: longest, capabilities: [longest], endpoint };
  assert.equal(outcome(await registering(accepted)), '200');
  assert.equal(audited(na, 'agent_registered').at(-1)?.agent_id, 'a'.repeat(256));
  for (const changes of [
    { agent_id: `${longest}a` },
    { capabilities: [`${longest}a`] },
    { endpoint: { ...endpoint, host: `${longest}a` } },
    { endpoint: { ...endpoint, scheme: `${longest}a` } },
    // 40 KB as sent, and six times as many characters in canonical form.
    { metadata: { note: 'é'.repeat(20_000) } },
  ]) {
    assert.equal(outcome(await registering(changes)), '400 invalid_agent_descriptor');
  }
});

test('texts from strangers are truncated in the audit log', async () => {
  const na = await shared();
  const long = 'x'.repeat(10_000);
  const answer = await nodeRequest(na, '/heartbeat', newKey(), { cert_id: long });
  assert.equal(outcome(answer), '403 certificate_not_found');
  assert.equal(audited(na, 'heartbeat_rejected').at(-1)?.cert_id, 'x'.repeat(256));
});

test('so are texts from operators, including lists, and the chain still verifies', async () => {
  const na = await shared();
  const roles = Array.from({ length: 1000 }, (_, n) => `role:${n}`);
  assert.equal(outcome(await operate(na, '/admin/invite', { roles })), '200');
  assert.deepEqual(audited(na, 'invite_created').at(-1)?.roles, roles.slice(0, 64));
  const subject = `${'y'.repeat(255)}\u{1F511}${'z'.repeat(100)}`;
  const terms = { subject_id: subject, roles: ['role:client'] };
  const issued = await operate(na, '/admin/attestations', terms);
  assert.equal(issued.body.subject_id, subject);
  const { subject_id } = audited(na, 'membership_attestation_issued').at(-1) ?? {};
  assert.equal(subject_id, 'y'.repeat(255));
  const verdict = await verifyAuditChain(await auditEntriesOf(na), GENESIS_HASH);
  assert.equal(verdict.valid, true);
});

test('free texts of operators have at most 1,024 characters', async () => {
  const na = await shared();
  const reason = 'r'.repeat(1025);
  const path = '/admin/operator-keys/ops-standard/revoke';
  const refused = await operate(na, path, { reason });
  assert.equal(outcome(refused), '422 request_validation_failed');
  const terms = { roles: ['role:client'], subject_id: reason };
  const unnamed = await operate(na, '/admin/attestations', terms);
  assert.equal(outcome(unnamed), '400 missing_attestation_subject');
  assert.equal(outcome(await operate(na, path, { reason: reason.slice(1) })), '200');
});

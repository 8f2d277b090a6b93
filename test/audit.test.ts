import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { suite, test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson, jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { type AuditEntry, GENESIS_HASH } from '../src/store/store.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import {
  freshNonce,
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  type OperatorCall,
  operate,
  outcome,
  send,
} from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { auditEntriesOf } from './support/test-stores.ts';
import { IMPORT, signedBy, sovereign } from './support/trust.ts';

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

function fingerprint(token: string): string {
  return sha256(token).slice(0, 16);
}

suite('every event is stored with its details', () => {
  test('invite_created: once for each token, with its fingerprint and never the token', async () => {
    const na = await shared();
    const tokens: string[] = [];
    const added = await addedBy(na, async () => {
      const terms = { roles: ['role:anchor'], count: 3, batch: 'field-team-7' };
      const { body } = await operate(na, '/admin/invite', terms, { operator: na.standard });
      for (const { token_id } of body.tokens) tokens.push(token_id);
    });
    assert.equal(tokens.length, 3);
    const terms = { roles: ['role:anchor'], batch: 'field-team-7', remote_addr };
    assert.deepEqual(
      added,
      tokens.map((token) => [
        'invite_created',
        { token_fingerprint: fingerprint(token), ...terms },
      ]),
    );
    const all = JSON.stringify(await auditEntriesOf(na));
    for (const token of tokens) assert.equal(all.includes(token), false);
  });

  test('certificate_issued, certificate_renewed and certificate_revoked', async () => {
    const na = await shared();
    const key = newKey();
    const token = await invite(na, { roles: ['role:a', 'role:b'] });
    const crl_sequence = (await get(na, '/crl')).body.sequence + 1;
    let [certId, nextId] = ['', ''];
    const added = await addedBy(na, async () => {
      certId = (await nodeRequest(na, '/join', key, { invite_token: token })).body.cert_id;
      nextId = (await nodeRequest(na, '/renew', key, { cert_id: certId })).body.cert_id;
      await operate(na, '/admin/revoke', { cert_id: nextId, reason: 'superseded' });
      await operate(na, '/admin/revoke', { cert_id: nextId, reason: 'superseded' });
      await heartbeat(na, { key, certId });
    });
    const node_public_key = key.publicKey;
    const invite_token_fingerprint = fingerprint(token);
    const roles = ['role:a', 'role:b'];
    assert.deepEqual(added, [
      [
        'certificate_issued',
        { cert_id: certId, node_public_key, invite_token_fingerprint, roles, remote_addr },
      ],
      ['certificate_renewed', { old_cert_id: certId, new_cert_id: nextId, node_public_key }],
      ['certificate_revoked', { cert_id: nextId, reason: 'superseded', crl_sequence, remote_addr }],
    ]);
  });

  test('join_rejected for a compromised key', async () => {
    const na = await shared();
    const { key, certId } = await joinedNode(na);
    await operate(na, '/admin/revoke', { cert_id: certId, reason: 'key_compromise' });
    const body = { invite_token: 'any token' };
    const [[type, details = {}] = [], ...others] = await addedBy(na, () =>
      nodeRequest(na, '/join', key, body),
    );
    assert.deepEqual([type, others], ['join_rejected', []]);
    const { reason, node_public_key, remote_addr: from } = details;
    assert.deepEqual(
      [reason, node_public_key, from],
      ['node_key_compromised', key.publicKey, remote_addr],
    );
    assert.equal(JSON.stringify(details).includes('any token'), false);
  });

  for (const [path, event] of [
    ['/heartbeat', 'heartbeat_rejected'],
    ['/renew', 'renewal_rejected'],
  ] as const) {
    test(`${event}, with the code or the reason of revocation`, async () => {
      const na = await shared();
      const node = await joinedNode(na, { max_validity_hours: 1 });
      const gone = await joinedNode(na);
      await operate(na, '/admin/revoke', { cert_id: gone.certId, reason: 'key_compromise' });
      const added = await addedBy(na, async () => {
        await nodeRequest(na, path, node.key, { cert_id: 'unknown' });
        await nodeRequest(na, path, gone.key, { cert_id: node.certId });
        await nodeRequest(na, path, gone.key, { cert_id: gone.certId });
        na.clock.advance(HOUR);
        await nodeRequest(na, path, node.key, { cert_id: node.certId });
      });
      assert.deepEqual(added, [
        [event, { cert_id: 'unknown', reason: 'certificate_not_found', remote_addr }],
        [event, { cert_id: node.certId, reason: 'certificate_key_mismatch', remote_addr }],
        [event, { cert_id: gone.certId, reason: 'key_compromise', remote_addr }],
        [event, { cert_id: node.certId, reason: 'certificate_expired', remote_addr }],
      ]);
    });
  }

  test('node_auth_failed, with the true reason and the scope of its nonces', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    const key = newKey();
    const token = await invite(na);
    const nonce = freshNonce();
    const beat = (call: object) =>
      nodeRequest(na, '/heartbeat', node.key, { cert_id: node.certId }, call);
    const added = await addedBy(na, async () => {
      await nodeRequest(na, '/join', key, { invite_token: token }, { signedBy: node.key });
      await beat({ alter: (body: Record<string, unknown>) => delete body.signature });
      await beat({ timestamp: 'yesterday' });
      await beat({ timestamp: formatInstant(na.clock.now() - 300 * SECOND - 1) });
      await beat({ timestamp: formatInstant(na.clock.now() + 300 * SECOND + 1) });
      await beat({ signedBy: key });
      await beat({ nonce });
      await beat({ nonce });
    });
    const ofNode = (reason: string) => ({ scope: `node:${node.key.publicKey}`, reason });
    const expected = [
      { scope: `join:${key.publicKey}`, reason: 'invalid_signature' },
      ofNode('missing_fields'),
      ofNode('invalid_timestamp'),
      ofNode('stale_timestamp'),
      ofNode('stale_timestamp'),
      ofNode('invalid_signature'),
      ofNode('nonce_replay'),
    ].map((details) => ['node_auth_failed', { ...details, remote_addr }]);
    assert.deepEqual(added, expected);
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

  test('operator_key_revoked, with the operator who did it, but not for a repeat', async () => {
    await using na = await startTestAuthority();
    const added = await addedBy(na, async () => {
      await operate(na, '/admin/operator-keys/ops-standard/revoke', { reason: 'key_compromise' });
      await operate(na, '/admin/operator-keys/ops-standard/revoke', { reason: 'again' });
      await operate(na, '/admin/operator-keys/unknown/revoke', {});
      await operate(na, '/admin/operator-keys/ops-privileged/revoke', {});
    });
    const [key_id, reason, revoked_by] = ['ops-standard', 'key_compromise', 'ops-privileged'];
    assert.deepEqual(added, [
      ['operator_key_revoked', { key_id, reason, revoked_by, remote_addr }],
    ]);
  });

  test('policy_published and policy_rolled_back', async () => {
    const na = await shared();
    const added = await addedBy(na, async () => {
      await operate(na, '/admin/policy', { policy_id: 'p-1' });
      await operate(na, '/admin/policy', { policy_id: 'p-2' });
      await operate(na, '/admin/policy/rollback', { policy_id: 'p-1' });
      await operate(na, '/admin/policy/rollback', { policy_id: 'unknown' });
    });
    assert.deepEqual(added, [
      ['policy_published', { policy_id: 'p-1', remote_addr }],
      ['policy_published', { policy_id: 'p-2', remote_addr }],
      ['policy_rolled_back', { policy_id: 'p-1', remote_addr }],
    ]);
  });

  test('agent_registered and agent_deregistered', async () => {
    const na = await shared();
    const { key } = await joinedNode(na);
    const added = await addedBy(na, async () => {
      const descriptor = {
        agent_id: 'a-1',
        node_public_key: key.publicKey,
        network_name: 'alpha',
        capabilities: ['llm:chat'],
        endpoint: { host: '192.0.2.7', port: 7448, scheme: 'ws' },
        registered_at: formatInstant(na.clock.now()),
        expires_at: formatInstant(na.clock.now() + HOUR),
        metadata: {},
      };
      const body = jsonText(signedBy(descriptor, key));
      assert.equal(outcome(await send(na, 'POST', '/agents', { body })), '200');
      const signedAt = formatInstant(na.clock.now());
      const envelope = {
        version: 'v1',
        signed_at: signedAt,
        signature: key.sign(`delete-agent|v1|${key.publicKey}|${signedAt}`),
      };
      const path = `/agents/${encodeURIComponent(key.publicKey)}`;
      const removed = await send(na, 'DELETE', path, { body: jsonText(envelope) });
      assert.equal(outcome(removed), '200');
    });
    assert.deepEqual(
      added.map(([type, { node_public_key }]) => [type, node_public_key]),
      [
        ['agent_registered', key.publicKey],
        ['agent_deregistered', key.publicKey],
      ],
    );
  });

  test('membership_attestation_issued and membership_attestation_revoked', async () => {
    const na = await shared();
    let attestation_id = '';
    const roles = ['role:client'];
    const added = await addedBy(na, async () => {
      const terms = { subject_id: 'agent-7', roles, claims: { limit: 1 } };
      ({ attestation_id } = (await operate(na, '/admin/attestations', terms)).body);
      const path = `/admin/attestations/${attestation_id}/revoke`;
      await operate(na, path, { reason: 'left' });
      await operate(na, path, { reason: 'again' });
      await operate(na, '/admin/attestations/unknown/revoke', {});
    });
    assert.equal(added.length, 2);
    assert.deepEqual(added[0], [
      'membership_attestation_issued',
      { attestation_id, issuer_sovereign_id: 'alpha', subject_id: 'agent-7', roles },
    ]);
    assert.equal(added[1]?.[0], 'membership_attestation_revoked');
    assert.equal(added[1]?.[1].attestation_id, attestation_id);
    assert.equal(added[1]?.[1].reason, 'left');
  });

  test('recognition_policy_saved, recognition_treaty_issued and recognition_treaty_revoked', async () => {
    const na = await shared();
    const beta = sovereign('beta');
    let treaty_id = '';
    const added = await addedBy(na, async () => {
      const issuer = { sovereign_id: 'beta', public_keys: [beta.key.publicKey] };
      await operate(na, '/admin/recognition-policy', {
        policy_id: 'r-1',
        recognition_policy: { local_sovereign_id: 'alpha', recognized_issuers: [issuer] },
      });
      const treaty = await operate(na, '/admin/recognition-treaties', {
        subject_sovereign_id: 'beta',
        subject_public_keys: [beta.key.publicKey],
        scope: { allowed_roles: ['role:client'] },
      });
      treaty_id = treaty.body.treaty_id;
      await operate(na, `/admin/recognition-treaties/${treaty_id}/revoke`, { reason: 'over' });
    });
    const parties = { issuer_sovereign_id: 'alpha', subject_sovereign_id: 'beta' };
    assert.deepEqual(added.slice(0, 2), [
      [
        'recognition_policy_saved',
        { policy_id: 'r-1', local_sovereign_id: 'alpha', recognized_issuer_count: 1 },
      ],
      ['recognition_treaty_issued', { treaty_id, ...parties, allowed_roles: ['role:client'] }],
    ]);
    assert.equal(added.length, 3);
    assert.equal(added[2]?.[0], 'recognition_treaty_revoked');
    assert.equal(added[2]?.[1].treaty_id, treaty_id);
    assert.equal(added[2]?.[1].reason, 'over');
  });

  test('sovereign_revocation_feed_imported and sovereign_revocation_feed_rejected', async () => {
    const na = await shared();
    const gamma = sovereign('gamma');
    const keys = { issuer_public_keys: [gamma.key.publicKey] };
    const feed = gamma.feed(na.clock.now(), 3, { revoked_attestation_ids: ['a-1', 'a-2'] });
    const about = { feed_id: String(feed.feed_id), issuer_sovereign_id: 'gamma', sequence: 3 };
    const added = await addedBy(na, async () => {
      assert.equal(outcome(await operate(na, IMPORT, { feed, ...keys })), '200');
      assert.equal(outcome(await operate(na, IMPORT, { feed, ...keys })), '409 stale_sequence');
    });
    assert.deepEqual(added, [
      ['sovereign_revocation_feed_imported', { ...about, revoked_count: 2 }],
      ['sovereign_revocation_feed_rejected', { ...about, reason: 'stale_sequence' }],
    ]);
  });

  for (const sequence of [2n ** 53n, 2n ** 64n, 2n ** 200n]) {
    test(`a feed of sequence ${sequence} is imported, and its entry keeps every digit`, async () => {
      await using na = await startTestAuthority();
      const beta = sovereign('beta');
      const keys = { issuer_public_keys: [beta.key.publicKey] };
      const feed = beta.feed(na.clock.now(), sequence);
      const added = await addedBy(na, async () => {
        assert.equal(outcome(await operate(na, IMPORT, { feed, ...keys })), '200');
      });
      assert.match(canonicalJson(added[0]?.[1] ?? {}), new RegExp(`"sequence":"?${sequence}\\b`));
      await using again = await na.restart();
      assert.equal((await verifyAuditChain(await auditEntriesOf(again), GENESIS_HASH)).valid, true);
    });
  }

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

  test('nothing for verifications, which anyone can request', async () => {
    const na = await shared();
    const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
    const now = na.clock.now();
    const added = await addedBy(na, async () => {
      const treaty = beta.treaty(now, gamma);
      const body = jsonText({ treaty, issuer_public_keys: [beta.key.publicKey] });
      const verified = await send(na, 'POST', '/recognition-treaties/verify', { body });
      assert.equal(verified.body.accepted, true);
    });
    assert.deepEqual(added, []);
  });

  test('nothing for reads, heartbeats, malformed requests and unknown invites', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    const added = await addedBy(na, async () => {
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
  test('is valid from the first entry to the last, across restarts', async () => {
    await using na = await startTestAuthority();
    await joinedNode(na);
    const first = await verifyAuditChain(await auditEntriesOf(na), GENESIS_HASH);
    assert.deepEqual(first, { valid: true, length: 2, head: (await auditEntriesOf(na))[1]?.hash });
    await using again = await na.restart();
    await joinedNode(again);
    await using third = await again.restart();
    await Promise.all(Array.from({ length: 25 }, () => joinedNode(third)));
    const entries = await auditEntriesOf(third);
    assert.equal(entries.length, 54);
    const head = entries.at(-1)?.hash;
    assert.deepEqual(await verifyAuditChain(entries, GENESIS_HASH), {
      valid: true,
      length: 54,
      head,
    });
    assert.equal(new Set(entries.map(({ event_id }) => event_id)).size, 54);
  });

  test('of a new authority is empty and valid', async () => {
    await using na = await startTestAuthority();
    const verdict = await verifyAuditChain(await auditEntriesOf(na), GENESIS_HASH);
    assert.deepEqual(verdict, { valid: true, length: 0, head: GENESIS_HASH });
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

  test('is still valid after it was exported as JSON and read again', async () => {
    await using na = await startTestAuthority();
    await joinedNode(na);
    await heartbeat(na, { key: newKey(), certId: 'é' });
    const exported = (await auditEntriesOf(na)).map((entry) => jsonText({ ...entry }));
    const read = exported.map((line) => JSON.parse(line) as AuditEntry);
    assert.equal((await verifyAuditChain(read, GENESIS_HASH)).valid, true);
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
    for (const [what, tamper, position, reason] of tampered) {
      const verdict = await verifyAuditChain(tamper(entries), GENESIS_HASH);
      assert.deepEqual(verdict, { valid: false, position, reason }, what);
    }
  });

  test('is shorter than its exported head if it was cut at the end', async () => {
    await using na = await startTestAuthority();
    await joinedNode(na);
    const entries = await auditEntriesOf(na);
    const verdict = await verifyAuditChain(entries.slice(0, -1), GENESIS_HASH);
    assert.deepEqual(verdict, { valid: true, length: 1, head: entries[0]?.hash });
  });

  test('keeps the order of simultaneous events, and each effect next to its own entry', async () => {
    await using na = await startTestAuthority();
    const nodes = await Promise.all(Array.from({ length: 20 }, () => joinedNode(na)));
    const answers = await Promise.all(
      nodes.map(({ certId }) => operate(na, '/admin/revoke', { cert_id: certId })),
    );
    for (const answer of answers) assert.equal(outcome(answer), '200');
    const revoked = (await auditEntriesOf(na)).filter(
      ({ event_type }) => event_type === 'certificate_revoked',
    );
    const sequences = revoked.map(({ details }) => details.crl_sequence);
    assert.deepEqual(
      sequences,
      Array.from({ length: 20 }, (_, i) => i + 1),
    );
    assert.equal((await verifyAuditChain(await auditEntriesOf(na), GENESIS_HASH)).valid, true);
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

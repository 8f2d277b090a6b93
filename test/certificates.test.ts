/** Certificates, from joining over heartbeats and renewals to their end [core-4-3], [core-4-4], [core-4-5]. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyText } from '../src/client/keys.ts';
import { readJoinCertificate } from '../src/protocol/records/join-certificate.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { valuesExcept, WRONG_HOURS } from './support/hostile.ts';
import {
  auditEvents,
  get,
  heartbeat,
  invite,
  joinedNode,
  joinedNodes,
  type NodeCall,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
  type TestNode,
} from './support/requests.ts';
import { auditEntriesOf } from './support/test-stores.ts';

/** For tests that leave nothing behind that would affect the others. */
const shared = sharedAuthority();

const LIVENESS_WINDOW = 300 * SECOND;
const GRACE = 900 * SECOND;
const remote_addr = '127.0.0.1';
const FORGED: NodeCall = { signedBy: newKey() };

function join(na: TestAuthority, key: TestNode['key'], body: JsonObject, call: NodeCall = {}) {
  return nodeRequest(na, '/join', key, body, call);
}

/** The answer to a new key that joins with a new invite of these terms. */
async function joins(na: TestAuthority, terms: JsonObject = {}, members: JsonObject = {}) {
  return join(na, newKey(), { invite_token: await invite(na, terms), ...members });
}

function renew(na: TestAuthority, node: TestNode, terms: JsonObject = {}, call: NodeCall = {}) {
  return nodeRequest(na, '/renew', node.key, { cert_id: node.certId, ...terms }, call);
}

/** The node with its renewed certificate. */
async function renewed(na: TestAuthority, node: TestNode, terms: JsonObject = {}) {
  const answer = await renew(na, node, terms);
  assert.equal(outcome(answer), '200');
  return { node: { key: node.key, certId: answer.body.cert_id as string }, answer };
}

async function revoke(na: TestAuthority, { certId }: TestNode, reason: string) {
  const answer = await operate(na, '/admin/revoke', { cert_id: certId, reason });
  assert.equal(outcome(answer), '200');
}

async function countOf(na: TestAuthority): Promise<number> {
  return (await get(na, '/nodes')).body.count;
}

/** The roster by certificate id; its count is checked against its rows and the public count. */
async function rosterOf(na: TestAuthority): Promise<Record<string, Record<string, unknown>>> {
  const { body } = await operate(na, '/nodes', {}, { method: 'GET', operator: na.standard });
  assert.equal(body.count, Object.keys(body.nodes).length);
  assert.equal(body.count, await countOf(na));
  return body.nodes;
}

async function rosterIds(na: TestAuthority): Promise<string[]> {
  return Object.keys(await rosterOf(na)).sort();
}

function lastAudit(na: TestAuthority) {
  return auditEvents(na).at(-1);
}

function hoursBetween({ issued_at, expires_at }: Record<string, string>): number {
  return (Date.parse(expires_at ?? '') - Date.parse(issued_at ?? '')) / HOUR;
}

/** The id of a certificate that the authority has signed, with these facts; issued now, valid for 72 hours. */
function checkCertificate(na: TestAuthority, answer: Received, facts: JsonObject): string {
  const { cert_id: certId, signatures, ...rest } = answer.body;
  assert.match(certId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(rest, {
    network_name: 'alpha',
    issued_at: formatInstant(na.clock.now()),
    expires_at: formatInstant(na.clock.now() + 72 * HOUR),
    issued_by: na.audience,
    ...facts,
  });
  assert.equal(signatures.length, 1);
  assert.equal(signatures[0].key_id, facts.issued_by ?? na.audience);
  const text = canonicalJson(answer.body, 'signatures');
  assert.equal(verifyText(na.audience, text, signatures[0].sig), true);
  assert.deepEqual(readJoinCertificate(answer.body), answer.body, 'already in canonical form');
  return certId;
}

test('a node joins and renews with signed certificates, which are audited', async () => {
  const na = await shared();
  const roles = ['role:anchor', 'role:bridge'];
  const key = newKey();
  const token = await invite(na, { roles, max_validity_hours: 72 });
  const fingerprint = lastAudit(na)?.details.token_fingerprint;
  const facts = { node_public_key: key.publicKey, roles };
  const first = checkCertificate(na, await join(na, key, { invite_token: token }), facts);
  const issued = {
    ...{ cert_id: first, node_public_key: key.publicKey },
    ...{ invite_token_fingerprint: fingerprint, roles, remote_addr },
  };
  assert.deepEqual(lastAudit(na), { type: 'certificate_issued', details: issued });
  const stored = (await auditEntriesOf(na)).at(-1);
  assert.deepEqual([stored?.event_type, stored?.details], ['certificate_issued', issued]);
  na.clock.advance(HOUR);
  const second = checkCertificate(na, await renew(na, { key, certId: first }), facts);
  assert.notEqual(second, first);
  assert.deepEqual(lastAudit(na), {
    type: 'certificate_renewed',
    details: { old_cert_id: first, new_cert_id: second, node_public_key: key.publicKey },
  });
});

test('a certificate has the configured label in issued_by and in the signature', async () => {
  await using na = await startTestAuthority({ environment: { NA_KEY_ID: 'na-2025-q1' } });
  const key = newKey();
  const invite_token = await invite(na, { max_validity_hours: 72 });
  checkCertificate(na, await join(na, key, { invite_token }), {
    ...{ node_public_key: key.publicKey, roles: ['role:client'], issued_by: 'na-2025-q1' },
  });
});

suite('POST /join', () => {
  test('checks in the specified order: each refusal comes before all later ones', async () => {
    const na = await shared();
    const compromised = await joinedNode(na);
    await revoke(na, compromised, 'key_compromise');
    const key = newKey();
    const token = await invite(na);
    const keyless: NodeCall = { ...FORGED, alter: (body) => delete body.node_public_key };
    for (const [joining, body, call, expected] of [
      [key, { invite_token: 'none', validity_hours: 0 }, keyless, '400 invalid_validity_hours'],
      [key, { invite_token: '' }, keyless, '400 missing_node_public_key'],
      [compromised.key, {}, FORGED, '400 missing_invite_token'],
      [compromised.key, { invite_token: 'none' }, FORGED, '403 node_key_compromised'],
      [key, { invite_token: 'none' }, FORGED, '403 invalid_invite_token'],
      [key, { invite_token: token }, FORGED, '401 node_auth_failed'],
      [key, { invite_token: token }, {}, '200'],
    ] as [TestNode['key'], JsonObject, NodeCall, string][]) {
      assert.equal(outcome(await join(na, joining, body, call)), expected);
    }
    for (const [name, invite_token] of valuesExcept('a string')) {
      const answer = await join(na, newKey(), { invite_token });
      assert.equal(outcome(answer), '400 missing_invite_token', name);
    }
  });

  test('takes the roles from the invite, whatever the body claims', async () => {
    const na = await shared();
    const claims = [['role:operator'], 'text', 7, null, {}, ['role:x', 7]] satisfies JsonValue[];
    for (const roles of claims) {
      const { body } = await joins(na, {}, { roles, extra: { deep: [1, null] } });
      assert.deepEqual(body.roles, ['role:client'], JSON.stringify(roles));
    }
  });

  test('accepts whole hours of validity in any spelling, up to what the invite allows', async () => {
    const na = await shared();
    for (const [wanted, hours, max_validity_hours = 200] of [
      [undefined, 168],
      [undefined, 24, 24],
      [1, 1],
      [new JsonFloat(72), 72],
      [new JsonFloat(1e2), 100],
      ['72', 72],
      ['0072', 72],
      [200, 200],
      [201, 200],
      [87_600, 200],
      [2n ** 70n, 200],
      [new JsonFloat(1e300), 200],
      ['9'.repeat(30), 200],
      [87_600, 87_600, 87_600],
    ] as [JsonValue | undefined, number, number?][]) {
      const terms = wanted === undefined ? {} : { validity_hours: wanted };
      const answer = await joins(na, { max_validity_hours }, terms);
      assert.equal(outcome(answer), '200');
      assert.equal(hoursBetween(answer.body), hours, `${wanted} of ${max_validity_hours}`);
      assert.equal(answer.body.expires_at, formatInstant(na.clock.now() + hours * HOUR));
    }
    const token = await invite(na);
    for (const [name, validity_hours] of WRONG_HOURS) {
      const answer = await join(na, newKey(), { invite_token: token, validity_hours });
      assert.equal(outcome(answer), '400 invalid_validity_hours', name);
    }
    const answer = await join(na, newKey(), { invite_token: token });
    assert.equal(outcome(answer), '200', 'a refusal leaves the token');
  });

  test('gives the same answer for unknown, used, expired and foreign tokens', async () => {
    const na = await shared();
    const [token, short, expired] = [
      await invite(na),
      await invite(na, { token_expiry_hours: 1 }),
      await invite(na, { token_expiry_hours: 1 }),
    ];
    const [used, recipient] = [newKey(), newKey()];
    await join(na, used, { invite_token: token });
    const recipient_public_key = recipient.publicKey;
    const bound = await invite(na, { recipient_public_key, token_expiry_hours: 2 });
    na.clock.advance(HOUR);
    assert.equal(outcome(await join(na, newKey(), { invite_token: short })), '200', 'in time');
    na.clock.advance(1);
    const errors = new Set<string>();
    for (const [key, invite_token] of [
      [newKey(), 'never made'],
      [newKey(), token],
      [used, token],
      [newKey(), bound],
      [newKey(), expired],
      [newKey(), token.toUpperCase()],
      [newKey(), `${token} `],
    ] as const) {
      const answer = await join(na, key, { invite_token });
      assert.equal(outcome(answer), '403 invalid_invite_token');
      errors.add(JSON.stringify({ ...answer.body.error, request_id: '' }));
    }
    assert.equal(errors.size, 1);
    const late = await join(na, recipient, { invite_token: bound });
    assert.equal(outcome(late), '200', 'whom it is bound to can use it after others have tried');
  });

  test('refuses a key with any certificate that was revoked for compromise, also after a restart', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    const { body } = await join(na, node.key, { invite_token: await invite(na) });
    await revoke(na, node, 'key_compromise');
    await revoke(na, { key: node.key, certId: body.cert_id }, 'superseded');
    const token = await invite(na);
    const blocked = await join(na, node.key, { invite_token: token });
    assert.equal(outcome(blocked), '403 node_key_compromised');
    const rejected = auditEvents(na).findLast(({ type }) => type === 'join_rejected')?.details;
    const { node_public_key, reason, ...more } = rejected ?? {};
    assert.deepEqual([node_public_key, reason], [node.key.publicKey, 'node_key_compromised']);
    assert.equal(more.remote_addr, remote_addr);
    await using again = await na.restart();
    const after = await join(again, node.key, { invite_token: token });
    assert.equal(outcome(after), '403 node_key_compromised');
    assert.equal(outcome(await join(again, newKey(), { invite_token: token })), '200');
  });

  test('lets a key join again, after a revocation for another reason or with a certificate in use', async () => {
    const na = await shared();
    for (const reason of ['cessation_of_operation', 'superseded', 'unspecified']) {
      const node = await joinedNode(na);
      await revoke(na, node, reason);
      const answer = await join(na, node.key, { invite_token: await invite(na) });
      assert.equal(outcome(answer), '200', reason);
      assert.notEqual(answer.body.cert_id, node.certId);
    }
    const node = await joinedNode(na);
    const { body } = await join(na, node.key, { invite_token: await invite(na) });
    const other = { key: node.key, certId: body.cert_id };
    const answers = [await heartbeat(na, node), await heartbeat(na, other)];
    assert.deepEqual(answers.map(outcome), ['200', '200']);
  });
});

/** What heartbeat and renewal share [core-4-4], [core-4-5]; `node-auth.test` has the proofs and their replays. */
for (const [path, type] of [
  ['/heartbeat', 'heartbeat_rejected'],
  ['/renew', 'renewal_rejected'],
] as const) {
  suite(`POST ${path} of a certificate`, () => {
    const ask = (na: TestAuthority, node: TestNode, call: NodeCall = {}) =>
      nodeRequest(na, path, node.key, { cert_id: node.certId }, call);

    test('checks in the specified order: each refusal comes before all later ones', async () => {
      const na = await shared();
      const node = await joinedNode(na, { max_validity_hours: 1 });
      const gone = await joinedNode(na, { max_validity_hours: 1 });
      await revoke(na, gone, 'superseded');
      na.clock.advance(HOUR - 1);
      assert.equal(outcome(await ask(na, node)), '200', 'until its last millisecond');
      na.clock.advance(1);
      const key = newKey();
      for (const [asked, call, expected] of [
        [{ key, certId: '' }, FORGED, '400 missing_certificate_identity'],
        [{ key, certId: 'none' }, FORGED, '403 certificate_not_found'],
        [{ key, certId: node.certId }, FORGED, '403 certificate_key_mismatch'],
        [{ key, certId: gone.certId }, FORGED, '403 certificate_key_mismatch'],
        [gone, FORGED, '403 certificate_revoked'],
        [node, FORGED, '401 node_auth_failed'],
        [node, {}, '403 certificate_expired'],
      ] as const) {
        assert.equal(outcome(await ask(na, asked, call)), expected);
      }
      for (const [name, value] of [...valuesExcept('a string'), ['nothing', undefined] as const]) {
        const alter = (body: Record<string, unknown>) => {
          if (value === undefined) delete body.cert_id;
          else body.cert_id = value;
        };
        const answer = await ask(na, node, { alter });
        assert.equal(outcome(answer), '400 missing_certificate_identity', name);
      }
    });

    test('audits a rejection with its code, or with the reason of the revocation', async () => {
      const na = await shared();
      const gone = await joinedNode(na);
      await revoke(na, gone, 'cessation_of_operation');
      const expired = await joinedNode(na, { max_validity_hours: 1 });
      na.clock.advance(HOUR);
      const node = await joinedNode(na);
      for (const [asked, code, reason = code] of [
        [{ ...node, certId: 'other' }, 'certificate_not_found'],
        [{ ...node, key: newKey() }, 'certificate_key_mismatch'],
        [gone, 'certificate_revoked', 'cessation_of_operation'],
        [expired, 'certificate_expired'],
      ] as const) {
        assert.equal(outcome(await ask(na, asked)), `403 ${code}`);
        const details = { cert_id: asked.certId, reason, remote_addr };
        assert.deepEqual(lastAudit(na), { type, details });
      }
    });

    test('refuses before the instant of issue, as can happen if the clock is set back', async () => {
      await using na = await startTestAuthority();
      const node = await joinedNode(na);
      na.clock.advance(-1);
      const early = await ask(na, node);
      na.clock.advance(1);
      const inTime = await ask(na, node);
      assert.deepEqual([early, inTime].map(outcome), ['403 certificate_not_yet_valid', '200']);
    });
  });
}

suite('POST /heartbeat', () => {
  test('returns the server’s time and nothing else', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    na.clock.advance(120 * SECOND + 7);
    const { status, body } = await heartbeat(na, node);
    assert.equal(status, 200);
    assert.deepEqual(body, { ack: true, server_time: formatInstant(na.clock.now()) });
  });

  test('accepts a status of up to 64 characters, and uses unknown if there is none', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    const beat = async (status?: JsonValue) => {
      const body = { cert_id: node.certId, ...(status !== undefined && { status }) };
      return outcome(await nodeRequest(na, '/heartbeat', node.key, body));
    };
    const shown = async () => (await rosterOf(na))[node.certId]?.status;
    for (const status of ['healthy', 'degraded é✓', 'x'.repeat(64)]) {
      assert.equal(await beat(status), '200');
      assert.equal(await shown(), status);
    }
    assert.equal(await beat(), '200');
    assert.equal(await shown(), 'unknown');
    for (const [name, value] of [
      ...valuesExcept('a string', 'an empty string', 'null'),
      ['long', 'x'.repeat(65)] as const,
    ]) {
      assert.equal(await beat(value), '422 request_validation_failed', name);
    }
    assert.equal(await shown(), 'unknown', 'a refusal changes nothing');
  });

  test('keeps a node active for less than 300 seconds; a refused one does not', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    na.clock.advance(LIVENESS_WINDOW - 1);
    assert.equal(await countOf(na), 1, 'joining is a contact');
    assert.equal(outcome(await heartbeat(na, node)), '200');
    na.clock.advance(LIVENESS_WINDOW - 1);
    assert.equal(await countOf(na), 1);
    assert.equal(outcome(await heartbeat(na, node, FORGED)), '401 node_auth_failed');
    na.clock.advance(1);
    assert.deepEqual(await rosterOf(na), {});
    assert.equal(outcome(await heartbeat(na, node)), '200');
    assert.equal(await countOf(na), 1, 'and back again');
    na.clock.advance(LIVENESS_WINDOW);
    assert.equal(await countOf(na), 0);
    const { node: next } = await renewed(na, node);
    assert.equal((await rosterOf(na))[next.certId]?.last_heartbeat, formatInstant(na.clock.now()));
    na.clock.advance(LIVENESS_WINDOW - 1);
    assert.equal(await countOf(na), 1, 'a renewal is a contact of the new certificate');
    na.clock.advance(1);
    assert.equal(await countOf(na), 0);
  });

  test('keeps a node active for the configured window', async () => {
    const environment = { MESH_ACTIVE_NODE_WINDOW_SECONDS: '10' };
    await using na = await startTestAuthority({ environment });
    await joinedNode(na);
    na.clock.advance(10 * SECOND - 1);
    assert.equal(await countOf(na), 1);
    na.clock.advance(1);
    assert.equal(await countOf(na), 0);
  });

  test('the window ends at the same instant after a restart, and liveness survives', async () => {
    await using na = await startTestAuthority();
    const [early, late] = [await joinedNode(na), await joinedNode(na)];
    na.clock.advance(SECOND);
    await heartbeat(na, late);
    const before = await rosterOf(na);
    await using again = await na.restart();
    assert.deepEqual(await rosterOf(again), before);
    again.clock.advance(LIVENESS_WINDOW - SECOND - 1);
    assert.deepEqual(await rosterIds(again), [early.certId, late.certId].sort());
    again.clock.advance(1);
    assert.deepEqual(await rosterIds(again), [late.certId]);
    await using third = await again.restart();
    third.clock.advance(SECOND - 1);
    assert.deepEqual(await rosterIds(third), [late.certId]);
    third.clock.advance(1);
    assert.deepEqual(await rosterOf(third), {});
  });

  test('the roster shows the last contact of each node: when, from where and how', async () => {
    await using na = await startTestAuthority();
    const joinedAt = na.clock.now();
    const node = await joinedNode(na, { roles: ['role:anchor'], max_validity_hours: 5 });
    const row = {
      node_public_key: node.key.publicKey,
      roles: ['role:anchor'],
      status: 'joined',
      last_heartbeat: formatInstant(joinedAt),
      remote_addr,
      expires_at: formatInstant(joinedAt + 5 * HOUR),
    };
    assert.deepEqual(await rosterOf(na), { [node.certId]: row });
    na.clock.advance(MINUTE);
    await heartbeat(na, node);
    const last_heartbeat = formatInstant(na.clock.now());
    const heard = { [node.certId]: { ...row, status: 'healthy', last_heartbeat } };
    assert.deepEqual(await rosterOf(na), heard);
    await using again = await na.restart();
    assert.deepEqual(await rosterOf(again), heard);
  });

  test('the roster contains every active node of a fleet, once', async () => {
    await using na = await startTestAuthority();
    const nodes = await joinedNodes(na, 40);
    na.clock.advance(LIVENESS_WINDOW - 1);
    const beating = nodes.filter((_, i) => i % 2 === 0);
    await Promise.all(beating.flatMap((node) => [heartbeat(na, node), heartbeat(na, node)]));
    assert.equal(await countOf(na), 40);
    na.clock.advance(1);
    assert.deepEqual(await rosterIds(na), beating.map(({ certId }) => certId).sort());
  });
});

suite('POST /renew', () => {
  test('caps the validity by the original invite, through any number of renewals', async () => {
    await using na = await startTestAuthority();
    const key = newKey();
    const token = await invite(na, { max_validity_hours: 100 });
    const first = await join(na, key, { invite_token: token, validity_hours: 2 });
    assert.equal(hoursBetween(first.body), 2);
    let node: TestNode = { key, certId: first.body.cert_id };
    for (const [wanted, given] of [
      [50, 50],
      [101, 100],
      ['99', 99],
      [new JsonFloat(1e6), 100],
      [undefined, 100],
      [1, 1],
      [100, 100],
    ] as const) {
      const terms = wanted === undefined ? {} : { validity_hours: wanted };
      const { node: next, answer } = await renewed(na, node, terms);
      assert.equal(hoursBetween(answer.body), given);
      node = next;
    }
    const unknown = { key: newKey(), certId: '' };
    for (const [name, validity_hours] of WRONG_HOURS) {
      const answer = await renew(na, unknown, { validity_hours }, FORGED);
      assert.equal(outcome(answer), '400 invalid_validity_hours', `${name}, before anything else`);
    }
    await using again = await na.restart();
    again.clock.advance(SECOND);
    const { answer } = await renewed(again, node, { validity_hours: 1000 });
    assert.equal(hoursBetween(answer.body), 100, 'also after a restart');
  });

  test('compares the roles that the node claims with those of the certificate, last of all', async () => {
    const na = await shared();
    const roles = ['role:a', 'role:b', 'role:a'];
    const node = await joinedNode(na, { roles, max_validity_hours: 1 });
    const changed = '403 renewal_role_change_forbidden';
    const malformed = '422 request_validation_failed';
    for (const [claimed, expected] of [
      [['role:a', 'role:b', 'role:a'], '200'],
      [['role:a', 'role:a', 'role:b'], '200'],
      [null, '200'],
      [['role:a', 'role:b'], changed],
      [['role:a', 'role:b', 'role:a', 'role:c'], changed],
      [['role:a', 'role:b', 'role:b'], changed],
      [[], changed],
      ['role:a', malformed],
      [{ 0: 'role:a' }, malformed],
      [['role:a', 7], malformed],
    ] as const) {
      const answer = await renew(na, node, { roles: claimed });
      assert.equal(outcome(answer), expected, JSON.stringify(claimed));
      if (expected === '200') assert.deepEqual(answer.body.roles, roles);
      if (expected !== changed) continue;
      assert.deepEqual(lastAudit(na), {
        type: 'renewal_rejected',
        details: { cert_id: node.certId, reason: 'renewal_role_change_forbidden', remote_addr },
      });
    }
    const other = await joinedNode(na, { max_validity_hours: 1 });
    const claim = { roles: ['role:x'] };
    assert.equal(outcome(await renew(na, other, claim, FORGED)), '401 node_auth_failed');
    na.clock.advance(HOUR);
    assert.equal(outcome(await renew(na, other, claim)), '403 certificate_expired');
  });

  test('supersedes the old certificate once the grace after its first renewal is over', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    const { node: next } = await renewed(na, node);
    na.clock.advance(GRACE - 100 * SECOND);
    await renewed(na, node);
    na.clock.advance(100 * SECOND - 1);
    assert.equal(outcome(await heartbeat(na, node)), '200');
    na.clock.advance(1);
    assert.equal(outcome(await heartbeat(na, node)), '403 certificate_superseded');
    assert.deepEqual(lastAudit(na), {
      type: 'heartbeat_rejected',
      details: { cert_id: node.certId, reason: 'certificate_superseded', remote_addr },
    });
    assert.equal(outcome(await renew(na, node)), '403 certificate_superseded');
    assert.equal(outcome(await heartbeat(na, next)), '200');
    await using again = await na.restart();
    again.clock.advance(SECOND);
    assert.equal(outcome(await heartbeat(again, node)), '403 certificate_superseded');
    assert.equal(outcome(await heartbeat(again, next)), '200');
  });

  test('supersedes it at once with RENEWAL_GRACE_SECONDS=0, and never with =off', async () => {
    for (const [RENEWAL_GRACE_SECONDS, expected] of [
      ['0', '403 certificate_superseded'],
      ['off', '200'],
    ] as const) {
      await using na = await startTestAuthority({ environment: { RENEWAL_GRACE_SECONDS } });
      const node = await joinedNode(na, { max_validity_hours: 2 });
      na.clock.advance(HOUR);
      const { node: next } = await renewed(na, node);
      assert.equal(outcome(await heartbeat(na, node)), expected);
      assert.equal(outcome(await heartbeat(na, next)), '200');
      na.clock.advance(HOUR - 1);
      assert.equal(outcome(await heartbeat(na, node)), expected);
      na.clock.advance(1);
      assert.equal(outcome(await heartbeat(na, node)), '403 certificate_expired');
    }
  });

  test('a renewed certificate counts again only after a contact that follows its renewal', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    await heartbeat(na, node);
    const { node: next } = await renewed(na, node);
    assert.deepEqual(await rosterIds(na), [next.certId], 'a node never counts twice');
    await using again = await na.restart();
    assert.deepEqual(await rosterIds(again), [next.certId], 'nor after a restart');
    again.clock.advance(SECOND);
    await heartbeat(again, node);
    const both = [node.certId, next.certId].sort();
    assert.deepEqual(await rosterIds(again), both);
    await using third = await again.restart();
    assert.deepEqual(await rosterIds(third), both);
  });

  test('concurrent renewals of one certificate give distinct certificates, all usable', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    const answers = await Promise.all(Array.from({ length: 10 }, () => renew(na, node)));
    const ids = answers.map(({ body }) => body.cert_id as string);
    assert.equal(new Set(ids).size, 10);
    for (const certId of ids) {
      assert.equal(outcome(await heartbeat(na, { key: node.key, certId })), '200');
    }
  });
});

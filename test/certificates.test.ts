import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson, jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyText } from '../src/client/keys.ts';
import { readJoinCertificate } from '../src/protocol/records/join-certificate.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { valuesExcept, WRONG_HOURS } from './support/hostile.ts';
import {
  freshNonce,
  get,
  heartbeat,
  invite,
  joinedNode,
  type NodeCall,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
  send,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { nodeProofHeader } from './support/signing.ts';
import { auditEntriesOf } from './support/test-stores.ts';

/** For tests that leave nothing behind that would affect the others. */
const shared = sharedAuthority();

const LIVENESS_WINDOW = 300 * SECOND;

function renew(na: TestAuthority, node: TestNode, terms: JsonObject = {}, call: NodeCall = {}) {
  return nodeRequest(na, '/renew', node.key, { cert_id: node.certId, ...terms }, call);
}

/** The node with its renewed certificate. */
async function renewed(na: TestAuthority, node: TestNode, terms: JsonObject = {}) {
  const answer = await renew(na, node, terms);
  assert.equal(outcome(answer), '200');
  return { node: { key: node.key, certId: answer.body.cert_id as string }, answer };
}

async function revoke(na: TestAuthority, node: TestNode, reason = 'unspecified') {
  assert.equal(
    outcome(await operate(na, '/admin/revoke', { cert_id: node.certId, reason })),
    '200',
  );
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

/** The last audit entry, as stored. */
async function lastAudit(na: TestAuthority) {
  const last = (await auditEntriesOf(na)).at(-1);
  return { type: last?.event_type, details: last?.details };
}

function hoursBetween({ issued_at, expires_at }: Record<string, string>): number {
  return (Date.parse(expires_at ?? '') - Date.parse(issued_at ?? '')) / HOUR;
}

suite('POST /join', () => {
  test('returns a signed certificate with the roles of the invite, and no envelope', async () => {
    await using na = await startTestAuthority();
    const key = newKey();
    const token = await invite(na, {
      roles: ['role:anchor', 'role:bridge'],
      max_validity_hours: 72,
    });
    const answer = await nodeRequest(na, '/join', key, { invite_token: token });
    assert.equal(answer.status, 200);
    const { cert_id: certId, signatures, ...facts } = answer.body;
    assert.match(certId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.deepEqual(facts, {
      node_public_key: key.publicKey,
      network_name: 'alpha',
      roles: ['role:anchor', 'role:bridge'],
      issued_at: formatInstant(na.clock.now()),
      expires_at: formatInstant(na.clock.now() + 72 * HOUR),
      issued_by: na.audience,
    });
    assert.equal(signatures.length, 1);
    assert.equal(signatures[0].key_id, na.audience);
    const text = canonicalJson(answer.body, 'signatures');
    assert.equal(verifyText(na.audience, text, signatures[0].sig), true);
    assert.deepEqual(readJoinCertificate(answer.body), answer.body, 'already in canonical form');
    assert.deepEqual(await lastAudit(na), {
      type: 'certificate_issued',
      details: {
        cert_id: certId,
        node_public_key: key.publicKey,
        invite_token_fingerprint: await fingerprintOf(na),
        roles: ['role:anchor', 'role:bridge'],
        remote_addr: '127.0.0.1',
      },
    });
  });

  test('names a configured key label in issued_by and in the signature', async () => {
    await using na = await startTestAuthority({ environment: { NA_KEY_ID: 'na-2025-q1' } });
    const answer = await nodeRequest(na, '/join', newKey(), { invite_token: await invite(na) });
    assert.equal(answer.body.issued_by, 'na-2025-q1');
    assert.equal(answer.body.signatures[0].key_id, 'na-2025-q1');
    const text = canonicalJson(answer.body, 'signatures');
    assert.equal(verifyText(na.audience, text, answer.body.signatures[0].sig), true);
  });

  test('checks in the specified order: each refusal comes before all later ones', async () => {
    const na = await shared();
    const compromised = await joinedNode(na);
    await revoke(na, compromised, 'key_compromise');
    const key = newKey();
    const token = await invite(na);
    const stranger = newKey();
    const wrongProof: NodeCall = { signedBy: stranger };
    const without = (name: string) => (body: Record<string, unknown>) => {
      delete body[name];
    };
    const bad = { invite_token: 'no such token', validity_hours: 0 };
    const outcomes = [
      await nodeRequest(na, '/join', key, bad, {
        ...wrongProof,
        alter: without('node_public_key'),
      }),
      await nodeRequest(
        na,
        '/join',
        key,
        { invite_token: '' },
        { ...wrongProof, alter: without('node_public_key') },
      ),
      await nodeRequest(na, '/join', compromised.key, {}, wrongProof),
      await nodeRequest(na, '/join', compromised.key, { invite_token: 'x' }, wrongProof),
      await nodeRequest(na, '/join', key, { invite_token: 'no such token' }, wrongProof),
      await nodeRequest(na, '/join', key, { invite_token: token }, wrongProof),
      await nodeRequest(na, '/join', key, { invite_token: token }),
    ].map(outcome);
    assert.deepEqual(outcomes, [
      '400 invalid_validity_hours',
      '400 missing_node_public_key',
      '400 missing_invite_token',
      '403 node_key_compromised',
      '403 invalid_invite_token',
      '401 node_auth_failed',
      '200',
    ]);
  });

  for (const field of ['node_public_key', 'invite_token'] as const) {
    for (const [name, value] of valuesExcept('a string')) {
      test(`refuses ${name} as ${field}`, async () => {
        const na = await shared();
        const body = { invite_token: await invite(na), [field]: value };
        const answer = await nodeRequest(na, '/join', newKey(), body);
        assert.equal(outcome(answer), `400 missing_${field}`);
      });
    }
  }

  test('ignores roles and unknown members of the body, but they are part of what is signed', async () => {
    const na = await shared();
    const token = await invite(na, { roles: ['role:client'] });
    const claims = { invite_token: token, roles: ['role:operator'], extra: { deep: [1, null] } };
    const added = await nodeRequest(
      na,
      '/join',
      newKey(),
      { invite_token: token },
      { alter: (body) => Object.assign(body, { roles: ['role:operator'] }) },
    );
    assert.equal(outcome(added), '401 node_auth_failed', 'a member added after signing');
    const answer = await nodeRequest(na, '/join', newKey(), claims);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body.roles, ['role:client']);
  });

  for (const roles of ['text', 7, null, {}, ['role:x', 7]] satisfies JsonValue[]) {
    test(`ignores even roles of the form ${JSON.stringify(roles)}`, async () => {
      const na = await shared();
      const body = { invite_token: await invite(na), roles };
      const answer = await nodeRequest(na, '/join', newKey(), body);
      assert.deepEqual(answer.body.roles, ['role:client']);
    });
  }

  for (const [name, wanted, hours] of [
    ['left out, 168 hours', undefined, 168],
    ['an integer', 1, 1],
    ['an integral float', new JsonFloat(72), 72],
    ['a float with exponent', new JsonFloat(1e2), 100],
    ['a string of digits', '72', 72],
    ['a string of digits with leading zeros', '0072', 72],
    ['exactly the cap of the invite', 200, 200],
    ['more than the invite allows', 201, 200],
    ['far more than the invite allows', 87_600, 200],
    ['beyond the safe integers', 2n ** 70n, 200],
    ['a float beyond the safe integers', new JsonFloat(1e300), 200],
    ['thirty digits', '9'.repeat(30), 200],
  ] as const) {
    test(`accepts validity_hours: ${name}`, async () => {
      const na = await shared();
      const terms = wanted === undefined ? {} : { validity_hours: wanted };
      const body = { invite_token: await invite(na, { max_validity_hours: 200 }), ...terms };
      const answer = await nodeRequest(na, '/join', newKey(), body);
      assert.equal(outcome(answer), '200');
      assert.equal(hoursBetween(answer.body), hours);
    });
  }

  test('caps the default of 168 hours at what the invite allows', async () => {
    const na = await shared();
    const token = await invite(na, { max_validity_hours: 24 });
    const { body } = await nodeRequest(na, '/join', newKey(), { invite_token: token });
    assert.equal(hoursBetween(body), 24);
  });

  test('refuses every other form of validity_hours, and the token stays usable', async () => {
    const na = await shared();
    const token = await invite(na);
    for (const [name, value] of WRONG_HOURS) {
      const body = { invite_token: token, validity_hours: value };
      const answer = await nodeRequest(na, '/join', newKey(), body);
      assert.equal(outcome(answer), '400 invalid_validity_hours', name);
    }
    const answer = await nodeRequest(na, '/join', newKey(), { invite_token: token });
    assert.equal(outcome(answer), '200');
  });

  test('accepts a token up to the instant of its expiry, and not a millisecond longer', async () => {
    const na = await shared();
    const tokens = [
      await invite(na, { token_expiry_hours: 1 }),
      await invite(na, { token_expiry_hours: 1 }),
    ];
    na.clock.advance(HOUR);
    const inTime = await nodeRequest(na, '/join', newKey(), { invite_token: tokens[0] ?? '' });
    na.clock.advance(1);
    const late = await nodeRequest(na, '/join', newKey(), { invite_token: tokens[1] ?? '' });
    assert.deepEqual([inTime, late].map(outcome), ['200', '403 invalid_invite_token']);
  });

  test('gives the same answer for unknown, used and foreign tokens', async () => {
    const na = await shared();
    const token = await invite(na);
    const used = newKey();
    await nodeRequest(na, '/join', used, { invite_token: token });
    const bound = await invite(na, { recipient_public_key: newKey().publicKey });
    const expired = await invite(na, { token_expiry_hours: 1 });
    na.clock.advance(HOUR + 1);
    const answers = [
      await nodeRequest(na, '/join', newKey(), { invite_token: 'never made' }),
      await nodeRequest(na, '/join', newKey(), { invite_token: token }),
      await nodeRequest(na, '/join', used, { invite_token: token }),
      await nodeRequest(na, '/join', newKey(), { invite_token: bound }),
      await nodeRequest(na, '/join', newKey(), { invite_token: expired }),
      await nodeRequest(na, '/join', newKey(), { invite_token: token.toUpperCase() }),
      await nodeRequest(na, '/join', newKey(), { invite_token: `${token} ` }),
    ];
    for (const answer of answers) assert.equal(outcome(answer), '403 invalid_invite_token');
    const texts = answers.map(({ body }) => ({ ...body.error, request_id: '' }));
    assert.equal(new Set(texts.map((text) => JSON.stringify(text))).size, 1);
  });

  test('lets the key that an invite is bound to use it, after others have tried', async () => {
    const na = await shared();
    const recipient = newKey();
    const token = await invite(na, { recipient_public_key: recipient.publicKey });
    const other = await nodeRequest(na, '/join', newKey(), { invite_token: token });
    const bound = await nodeRequest(na, '/join', recipient, { invite_token: token });
    assert.deepEqual([other, bound].map(outcome), ['403 invalid_invite_token', '200']);
  });

  test('a failed proof consumes neither the token nor the nonce', async () => {
    const na = await shared();
    const key = newKey();
    const token = await invite(na);
    const nonce = freshNonce();
    const body = { invite_token: token };
    const failed = await nodeRequest(na, '/join', key, body, { nonce, signedBy: newKey() });
    assert.equal(outcome(failed), '401 node_auth_failed');
    assert.deepEqual(failed.body.error.details, {});
    assert.deepEqual(await lastAudit(na), {
      type: 'node_auth_failed',
      details: {
        scope: `join:${key.publicKey}`,
        reason: 'invalid_signature',
        remote_addr: '127.0.0.1',
      },
    });
    assert.equal(outcome(await nodeRequest(na, '/join', key, body, { nonce })), '200');
  });

  test('a nonce that was spent by a join cannot be used for another join of that key', async () => {
    const na = await shared();
    const [key, nonce] = [newKey(), freshNonce()];
    const first = await invite(na);
    const second = await invite(na);
    await nodeRequest(na, '/join', key, { invite_token: first }, { nonce });
    const replayed = await nodeRequest(na, '/join', key, { invite_token: second }, { nonce });
    assert.equal(outcome(replayed), '401 node_auth_failed');
    assert.equal((await lastAudit(na)).details?.reason, 'nonce_replay');
    const elsewhere = await nodeRequest(na, '/join', newKey(), { invite_token: second }, { nonce });
    assert.equal(outcome(elsewhere), '200', 'the scope is the node key');
  });

  test('a spent join nonce stays spent after a restart', async () => {
    await using na = await startTestAuthority();
    const [key, nonce] = [newKey(), freshNonce()];
    await nodeRequest(na, '/join', key, { invite_token: await invite(na) }, { nonce });
    await using again = await na.restart();
    const body = { invite_token: await invite(again) };
    const replayed = await nodeRequest(again, '/join', key, body, { nonce });
    assert.equal(outcome(replayed), '401 node_auth_failed');
  });

  test('refuses a key whose certificate was revoked for key compromise, and leaves the token', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    await revoke(na, node, 'key_compromise');
    const token = await invite(na);
    const blocked = await nodeRequest(na, '/join', node.key, { invite_token: token });
    assert.equal(outcome(blocked), '403 node_key_compromised');
    assert.equal((await lastAudit(na)).type, 'join_rejected');
    const { details } = await lastAudit(na);
    assert.equal(details?.node_public_key, node.key.publicKey);
    assert.equal(details?.reason, 'node_key_compromised');
    assert.equal(details?.remote_addr, '127.0.0.1');
    await using again = await na.restart();
    const after = await nodeRequest(again, '/join', node.key, { invite_token: token });
    assert.equal(outcome(after), '403 node_key_compromised', 'also after a restart');
    const other = await nodeRequest(again, '/join', newKey(), { invite_token: token });
    assert.equal(outcome(other), '200');
  });

  for (const reason of ['cessation_of_operation', 'superseded', 'unspecified']) {
    test(`lets a key join again that was revoked with reason ${reason}`, async () => {
      const na = await shared();
      const node = await joinedNode(na);
      await revoke(na, node, reason);
      const answer = await nodeRequest(na, '/join', node.key, { invite_token: await invite(na) });
      assert.equal(outcome(answer), '200');
      assert.notEqual(answer.body.cert_id, node.certId);
    });
  }

  test('any compromise of a key counts, regardless of its later certificates', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    const again = await nodeRequest(na, '/join', node.key, { invite_token: await invite(na) });
    await revoke(na, node, 'key_compromise');
    const { body } = again;
    await revoke(na, { key: node.key, certId: body.cert_id }, 'superseded');
    const answer = await nodeRequest(na, '/join', node.key, { invite_token: await invite(na) });
    assert.equal(outcome(answer), '403 node_key_compromised');
  });

  test('a key may have several certificates at once, one for each invite', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    const { body } = await nodeRequest(na, '/join', node.key, { invite_token: await invite(na) });
    const other = { key: node.key, certId: body.cert_id };
    const answers = [await heartbeat(na, node), await heartbeat(na, other)];
    assert.deepEqual(answers.map(outcome), ['200', '200']);
  });
});

/** The order of the checks that heartbeat and renewal share [core-4-4], [core-4-5]. */
for (const [path, event] of [
  ['/heartbeat', 'heartbeat_rejected'],
  ['/renew', 'renewal_rejected'],
] as const) {
  suite(`POST ${path} of a certificate`, () => {
    const ask = (na: TestAuthority, node: TestNode, body: JsonObject = {}, call: NodeCall = {}) =>
      nodeRequest(na, path, node.key, { cert_id: node.certId, ...body }, call);

    test('checks in the specified order: each refusal comes before all later ones', async () => {
      const na = await shared();
      const node = await joinedNode(na, { max_validity_hours: 1 });
      const gone = await joinedNode(na, { max_validity_hours: 1 });
      await revoke(na, gone, 'superseded');
      na.clock.advance(HOUR);
      const wrongProof: NodeCall = { signedBy: newKey() };
      const stranger = { key: newKey(), certId: node.certId };
      const strangerOfRevoked = { key: newKey(), certId: gone.certId };
      const outcomes = [
        await ask(na, { ...node, certId: '' }, {}, wrongProof),
        await ask(na, { ...stranger, certId: 'no such certificate' }, {}, wrongProof),
        await ask(na, stranger, {}, wrongProof),
        await ask(na, strangerOfRevoked, {}, wrongProof),
        await ask(na, gone, {}, wrongProof),
        await ask(na, node, {}, wrongProof),
        await ask(na, node),
      ].map(outcome);
      assert.deepEqual(outcomes, [
        '400 missing_certificate_identity',
        '403 certificate_not_found',
        '403 certificate_key_mismatch',
        '403 certificate_key_mismatch',
        '403 certificate_revoked',
        '401 node_auth_failed',
        '403 certificate_expired',
      ]);
    });

    for (const field of ['cert_id', 'node_public_key']) {
      for (const [name, value] of [...valuesExcept('a string'), ['nothing', undefined] as const]) {
        test(`refuses ${name} as ${field}`, async () => {
          const na = await shared();
          const node = await joinedNode(na);
          const alter = (body: Record<string, unknown>) => {
            if (value === undefined) delete body[field];
            else body[field] = value;
          };
          const answer = await ask(na, node, {}, { alter });
          assert.equal(outcome(answer), '400 missing_certificate_identity');
        });
      }
    }

    test('refuses at the instant of expiry, not a millisecond before', async () => {
      const na = await shared();
      const node = await joinedNode(na, { max_validity_hours: 1 });
      na.clock.advance(HOUR - 1);
      const inTime = await ask(na, node);
      na.clock.advance(1);
      const late = await ask(na, node);
      assert.deepEqual([inTime, late].map(outcome), ['200', '403 certificate_expired']);
      assert.deepEqual(await lastAudit(na), {
        type: event,
        details: { cert_id: node.certId, reason: 'certificate_expired', remote_addr: '127.0.0.1' },
      });
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

    for (const [what, reason, prepare] of [
      ['an unknown certificate', 'certificate_not_found', (node) => ({ ...node, certId: 'other' })],
      ['another key', 'certificate_key_mismatch', (node) => ({ ...node, key: newKey() })],
    ] as const satisfies readonly (readonly [string, string, (node: TestNode) => TestNode])[]) {
      test(`audits the rejection of ${what} with its code`, async () => {
        const na = await shared();
        const asked = prepare(await joinedNode(na));
        assert.equal(outcome(await ask(na, asked)), `403 ${reason}`);
        assert.deepEqual(await lastAudit(na), {
          type: event,
          details: { cert_id: asked.certId, reason, remote_addr: '127.0.0.1' },
        });
      });
    }

    test('audits the rejection of a revoked certificate with the reason of its revocation', async () => {
      const na = await shared();
      const node = await joinedNode(na);
      await revoke(na, node, 'cessation_of_operation');
      assert.equal(outcome(await ask(na, node)), '403 certificate_revoked');
      assert.deepEqual(await lastAudit(na), {
        type: event,
        details: {
          cert_id: node.certId,
          reason: 'cessation_of_operation',
          remote_addr: '127.0.0.1',
        },
      });
    });

    test('audits a failed proof under the scope that heartbeat and renewal share', async () => {
      const na = await shared();
      const node = await joinedNode(na);
      await ask(na, node, {}, { signedBy: newKey() });
      assert.deepEqual(await lastAudit(na), {
        type: 'node_auth_failed',
        details: {
          scope: `node:${node.key.publicKey}`,
          reason: 'invalid_signature',
          remote_addr: '127.0.0.1',
        },
      });
    });

    test('accepts a proof in the header, and then ignores a signature in the body', async () => {
      const na = await shared();
      const node = await joinedNode(na);
      const body = jsonText({
        cert_id: node.certId,
        node_public_key: node.key.publicKey,
        signature: 'none',
      });
      const header = await nodeProofHeader(
        {
          method: 'POST',
          path,
          query: {},
          audience: na.audience,
          bodyText: body,
          timestamp: formatInstant(na.clock.now()),
          nonce: freshNonce(),
        },
        node.key,
      );
      const headers = { 'X-Mesh-Node-Proof': header };
      assert.equal(outcome(await send(na, 'POST', path, { body, headers })), '200');
      assert.equal(
        outcome(await send(na, 'POST', path, { body, headers })),
        '401 node_auth_failed',
      );
    });

    for (const other of ['/heartbeat', '/renew']) {
      test(`an accepted body cannot be sent to ${other} as well, before or after a restart`, async () => {
        await using na = await startTestAuthority();
        const node = await joinedNode(na);
        const signed = signedByNode(na, path, node.key, { cert_id: node.certId });
        assert.equal(outcome(await sendSigned(na, signed)), '200');
        const replayed = { ...signed, path: other };
        assert.equal(outcome(await sendSigned(na, replayed)), '401 node_auth_failed');
        await using again = await na.restart();
        again.clock.advance(SECOND);
        assert.equal(outcome(await sendSigned(again, replayed)), '401 node_auth_failed');
      });
    }

    test('a late replay is refused for its age before its nonce is checked', async () => {
      const na = await shared();
      const node = await joinedNode(na);
      const signed = signedByNode(na, path, node.key, { cert_id: node.certId });
      assert.equal(outcome(await sendSigned(na, signed)), '200');
      na.clock.advance(300 * SECOND + 1);
      assert.equal(outcome(await sendSigned(na, signed)), '401 node_auth_failed');
      assert.equal((await lastAudit(na)).details?.reason, 'stale_timestamp');
    });

    test('continues after a restart, with every certificate that was issued', async () => {
      await using na = await startTestAuthority();
      const node = await joinedNode(na);
      const gone = await joinedNode(na);
      await revoke(na, gone, 'superseded');
      await using again = await na.restart();
      again.clock.advance(SECOND);
      assert.equal(outcome(await ask(again, gone)), '403 certificate_revoked');
      assert.equal(outcome(await ask(again, node)), '200');
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
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    const beat = (status?: JsonValue) =>
      nodeRequest(na, '/heartbeat', node.key, {
        cert_id: node.certId,
        ...(status !== undefined && { status }),
      });
    for (const status of ['healthy', 'degraded é✓', 'x'.repeat(64)]) {
      assert.equal(outcome(await beat(status)), '200');
      assert.equal((await rosterOf(na))[node.certId]?.status, status);
    }
    assert.equal(outcome(await beat()), '200');
    assert.equal((await rosterOf(na))[node.certId]?.status, 'unknown');
    for (const [name, value] of [
      ...valuesExcept('a string', 'an empty string', 'null'),
      ['long', 'x'.repeat(65)] as const,
    ]) {
      assert.equal(outcome(await beat(value)), '422 request_validation_failed', name);
    }
    assert.equal((await rosterOf(na))[node.certId]?.status, 'unknown', 'a refusal changes nothing');
  });

  test('keeps a node active for less than 300 seconds', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    na.clock.advance(LIVENESS_WINDOW - 1);
    assert.equal(await countOf(na), 1, 'joining is a contact');
    assert.equal(outcome(await heartbeat(na, node)), '200');
    na.clock.advance(LIVENESS_WINDOW - 1);
    assert.equal(await countOf(na), 1);
    na.clock.advance(1);
    assert.equal(await countOf(na), 0);
    assert.deepEqual(await rosterOf(na), {});
    assert.equal(outcome(await heartbeat(na, node)), '200');
    assert.equal(await countOf(na), 1, 'and back again');
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

  test('a refused heartbeat does not keep a node active', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    na.clock.advance(LIVENESS_WINDOW - 1);
    assert.equal(
      outcome(await heartbeat(na, node, { signedBy: newKey() })),
      '401 node_auth_failed',
    );
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
    assert.deepEqual(Object.keys(await rosterOf(again)).sort(), [early.certId, late.certId].sort());
    again.clock.advance(1);
    assert.deepEqual(Object.keys(await rosterOf(again)), [late.certId]);
    await using third = await again.restart();
    third.clock.advance(SECOND - 1);
    assert.deepEqual(Object.keys(await rosterOf(third)), [late.certId]);
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
      remote_addr: '127.0.0.1',
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
    const nodes = await Promise.all(Array.from({ length: 40 }, () => joinedNode(na)));
    na.clock.advance(LIVENESS_WINDOW - 1);
    const beating = nodes.filter((_, i) => i % 2 === 0);
    await Promise.all(beating.flatMap((node) => [heartbeat(na, node), heartbeat(na, node)]));
    assert.equal(await countOf(na), 40);
    na.clock.advance(1);
    const expected = beating.map(({ certId }) => certId).sort();
    assert.deepEqual(Object.keys(await rosterOf(na)).sort(), expected);
  });
});

suite('POST /renew', () => {
  test('returns a new certificate with the roles of the old one, and audits both', async () => {
    const na = await shared();
    const node = await joinedNode(na, { roles: ['role:anchor', 'role:bridge'] });
    na.clock.advance(HOUR);
    const answer = await renew(na, node);
    assert.equal(answer.status, 200);
    const { cert_id: certId, signatures, ...facts } = answer.body;
    assert.notEqual(certId, node.certId);
    assert.deepEqual(facts, {
      node_public_key: node.key.publicKey,
      network_name: 'alpha',
      roles: ['role:anchor', 'role:bridge'],
      issued_at: formatInstant(na.clock.now()),
      expires_at: formatInstant(na.clock.now() + 168 * HOUR),
      issued_by: na.audience,
    });
    const text = canonicalJson(answer.body, 'signatures');
    assert.equal(verifyText(na.audience, text, signatures[0].sig), true);
    assert.deepEqual(await lastAudit(na), {
      type: 'certificate_renewed',
      details: {
        old_cert_id: node.certId,
        new_cert_id: certId,
        node_public_key: node.key.publicKey,
      },
    });
  });

  test('refuses every wrong form of validity_hours before anything else', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    const wrong = { key: newKey(), certId: '' };
    for (const [name, value] of WRONG_HOURS) {
      const answer = await renew(na, wrong, { validity_hours: value }, { signedBy: node.key });
      assert.equal(outcome(answer), '400 invalid_validity_hours', name);
    }
  });

  test('caps the validity by the original invite, through any number of renewals', async () => {
    await using na = await startTestAuthority();
    const key = newKey();
    const token = await invite(na, { max_validity_hours: 100 });
    const first = await nodeRequest(na, '/join', key, { invite_token: token, validity_hours: 2 });
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
    await using again = await na.restart();
    again.clock.advance(SECOND);
    const { answer } = await renewed(again, node, { validity_hours: 1000 });
    assert.equal(hoursBetween(answer.body), 100, 'also after a restart');
  });

  for (const [name, roles, expected] of [
    ['the same roles', ['role:a', 'role:b', 'role:a'], '200'],
    ['the same roles in another order', ['role:a', 'role:a', 'role:b'], '200'],
    ['one role less', ['role:a', 'role:b'], '403 renewal_role_change_forbidden'],
    [
      'one role more',
      ['role:a', 'role:b', 'role:a', 'role:c'],
      '403 renewal_role_change_forbidden',
    ],
    ['another multiplicity', ['role:a', 'role:b', 'role:b'], '403 renewal_role_change_forbidden'],
    ['no role', [], '403 renewal_role_change_forbidden'],
    ['a string', 'role:a', '422 request_validation_failed'],
    ['an object', { 0: 'role:a' }, '422 request_validation_failed'],
    ['null, which counts as no claim', null, '200'],
    ['a number in the list', ['role:a', 7], '422 request_validation_failed'],
  ] as const) {
    test(`answers ${expected} when the node claims ${name}`, async () => {
      const na = await shared();
      const node = await joinedNode(na, { roles: ['role:a', 'role:b', 'role:a'] });
      const answer = await renew(na, node, { roles });
      assert.equal(outcome(answer), expected);
      if (expected === '200') assert.deepEqual(answer.body.roles, ['role:a', 'role:b', 'role:a']);
    });
  }

  test('checks claimed roles last, after the proof and the window', async () => {
    const na = await shared();
    const node = await joinedNode(na, { max_validity_hours: 1 });
    const wrongProof = await renew(na, node, { roles: ['role:x'] }, { signedBy: newKey() });
    const changed = await renew(na, node, { roles: ['role:x'] });
    assert.deepEqual(await lastAudit(na), {
      type: 'renewal_rejected',
      details: {
        cert_id: node.certId,
        reason: 'renewal_role_change_forbidden',
        remote_addr: '127.0.0.1',
      },
    });
    na.clock.advance(HOUR);
    const expired = await renew(na, node, { roles: ['role:x'] });
    assert.deepEqual([wrongProof, changed, expired].map(outcome), [
      '401 node_auth_failed',
      '403 renewal_role_change_forbidden',
      '403 certificate_expired',
    ]);
  });

  test('with RENEWAL_GRACE_SECONDS=off a certificate that was renewed stays valid until it expires', async () => {
    await using na = await startTestAuthority({ environment: { RENEWAL_GRACE_SECONDS: 'off' } });
    const node = await joinedNode(na, { max_validity_hours: 2 });
    na.clock.advance(HOUR);
    await renewed(na, node);
    na.clock.advance(HOUR - 1);
    const inTime = await heartbeat(na, node);
    na.clock.advance(1);
    const late = await heartbeat(na, node);
    assert.deepEqual([inTime, late].map(outcome), ['200', '403 certificate_expired']);
  });

  test('with RENEWAL_GRACE_SECONDS it is superseded once that time is over', async () => {
    await using na = await startTestAuthority({ environment: { RENEWAL_GRACE_SECONDS: '900' } });
    const node = await joinedNode(na);
    const { node: next } = await renewed(na, node);
    na.clock.advance(900 * SECOND - 1);
    assert.equal(outcome(await heartbeat(na, node)), '200');
    na.clock.advance(1);
    assert.equal(outcome(await heartbeat(na, node)), '403 certificate_superseded');
    assert.deepEqual(await lastAudit(na), {
      type: 'heartbeat_rejected',
      details: {
        cert_id: node.certId,
        reason: 'certificate_superseded',
        remote_addr: '127.0.0.1',
      },
    });
    assert.equal(outcome(await renew(na, node)), '403 certificate_superseded');
    assert.equal(outcome(await heartbeat(na, next)), '200');
    await using again = await na.restart();
    again.clock.advance(SECOND);
    assert.equal(outcome(await heartbeat(again, node)), '403 certificate_superseded');
    assert.equal(outcome(await heartbeat(again, next)), '200');
  });

  test('with a grace of 0 it is superseded at once', async () => {
    await using na = await startTestAuthority({ environment: { RENEWAL_GRACE_SECONDS: '0' } });
    const node = await joinedNode(na);
    const { node: next } = await renewed(na, node);
    assert.equal(outcome(await heartbeat(na, node)), '403 certificate_superseded');
    assert.equal(outcome(await heartbeat(na, next)), '200');
  });

  test('another renewal does not extend a grace period that has begun', async () => {
    await using na = await startTestAuthority({ environment: { RENEWAL_GRACE_SECONDS: '900' } });
    const node = await joinedNode(na);
    await renewed(na, node);
    na.clock.advance(800 * SECOND);
    await renewed(na, node);
    na.clock.advance(100 * SECOND);
    assert.equal(outcome(await heartbeat(na, node)), '403 certificate_superseded');
  });

  test('a renewed certificate counts again only after a contact that follows its renewal', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    await heartbeat(na, node);
    const { node: next } = await renewed(na, node);
    assert.deepEqual(Object.keys(await rosterOf(na)), [next.certId], 'a node never counts twice');
    await using again = await na.restart();
    assert.deepEqual(Object.keys(await rosterOf(again)), [next.certId], 'nor after a restart');
    again.clock.advance(SECOND);
    await heartbeat(again, node);
    const both = [node.certId, next.certId].sort();
    assert.deepEqual(Object.keys(await rosterOf(again)).sort(), both);
    await using third = await again.restart();
    assert.deepEqual(Object.keys(await rosterOf(third)).sort(), both);
  });

  test('a renewal is a contact: the new certificate counts without a heartbeat of its own', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    na.clock.advance(LIVENESS_WINDOW);
    assert.equal(await countOf(na), 0);
    const { node: next } = await renewed(na, node);
    assert.equal((await rosterOf(na))[next.certId]?.last_heartbeat, formatInstant(na.clock.now()));
    na.clock.advance(LIVENESS_WINDOW - 1);
    assert.equal(await countOf(na), 1);
    na.clock.advance(1);
    assert.equal(await countOf(na), 0);
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

test('MESH_CREATED_STATUS=201 is the status of joins and renewals, not of heartbeats or refusals', async () => {
  await using na = await startTestAuthority({ environment: { MESH_CREATED_STATUS: '201' } });
  const made = await operate(na, '/admin/invite', {});
  const key = newKey();
  const joined = await nodeRequest(na, '/join', key, { invite_token: made.body.token_id });
  const node = { key, certId: joined.body.cert_id };
  const answers: Received[] = [
    made,
    joined,
    await renew(na, node),
    await heartbeat(na, node),
    await operate(na, '/admin/revoke', { cert_id: node.certId }),
    await renew(na, node),
    await nodeRequest(na, '/join', newKey(), { invite_token: made.body.token_id }),
  ];
  assert.deepEqual(answers.map(outcome), [
    '201',
    '201',
    '201',
    '200',
    '200',
    '403 certificate_revoked',
    '403 invalid_invite_token',
  ]);
});

test('a certificate of the longest validity has a date in the usual format', async () => {
  const na = await shared();
  const token = await invite(na, { max_validity_hours: 87_600 });
  const body = { invite_token: token, validity_hours: 87_600 };
  const { body: certificate } = await nodeRequest(na, '/join', newKey(), body);
  assert.equal(hoursBetween(certificate), 87_600);
  assert.equal(certificate.expires_at, formatInstant(na.clock.now() + 87_600 * HOUR));
});

/** The fingerprint of the newest invite. */
async function fingerprintOf(na: TestAuthority): Promise<unknown> {
  const entries = await auditEntriesOf(na);
  return entries.findLast(({ event_type }) => event_type === 'invite_created')?.details
    .token_fingerprint;
}

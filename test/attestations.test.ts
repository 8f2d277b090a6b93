/**
 * Membership attestations that the authority issues [service-states-attestation], [core-4-11], [core-5-7], [core-5-11].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { readMembershipAttestation } from '../src/protocol/records/membership-attestation.ts';
import { isSignedByAny } from '../src/protocol/records/signed-record.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { valuesExcept, WRONG_HOURS } from './support/hostile.ts';
import { auditEvents, get, newKey, operate, outcome, type Received } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import {
  attest,
  audited,
  issued,
  parsed,
  revokeAttestation,
  UUID,
  verifies,
} from './support/trust.ts';

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority();

const ISSUE = '/admin/attestations';
const DAY = 24 * HOUR;

test('an attestation without further terms has all defaults, and is signed by the authority', async () => {
  await using na = await startTestAuthority();
  na.clock.advance(1234);
  const answer = await attest(na);
  assert.equal(answer.status, 200);
  const { attestation_id, signatures, ...rest } = answer.body;
  assert.match(attestation_id, UUID);
  const now = formatInstant(na.clock.now());
  assert.deepEqual(rest, {
    issuer_sovereign_id: 'alpha',
    subject_id: 'agent-7',
    subject_public_key: null,
    roles: ['role:client'],
    status: 'active',
    issued_at: now,
    valid_from: now,
    expires_at: formatInstant(na.clock.now() + 168 * HOUR),
    issued_by: na.audience,
    claims: {},
  });
  assert.equal(signatures.length, 1);
  assert.equal(signatures[0].key_id, na.audience);
  assert.ok(verifies(parsed(answer), na.audience));
});

test('an attestation contains what the operator chose, with numbers in claims token for token', async () => {
  const na = await shared();
  const claims = parseJson(
    '{"limit":1.0,"n":10,"tiny":1e-7,"big":1000000000000000000000000000000,"at":"2026-01-01T00:00:00+00:00","name":"Z\\u00fcrich \\u2713 \\ud83d\\ude00","__proto__":{"x":[1.50,null,true]}}',
  ) as JsonObject;
  const answer = await attest(na, {
    subject_id: 'ägent ✓',
    roles: ['role:client', 'anything', 'role:client'],
    validity_hours: 3,
    subject_public_key: 'a placeholder, not a key',
    claims,
    issuer_sovereign_id: 'alpha',
  });
  const record = parsed(answer);
  assert.equal(record.subject_id, 'ägent ✓');
  assert.deepEqual(record.roles, ['role:client', 'anything', 'role:client']);
  assert.equal(record.subject_public_key, 'a placeholder, not a key');
  assert.equal(record.expires_at, formatInstant(na.clock.now() + 3 * HOUR));
  assert.deepEqual(record.claims, claims);
  assert.match(answer.text, /"limit":1\.0,/);
  assert.match(answer.text, /"big":1000000000000000000000000000000,/);
  assert.match(answer.text, /"tiny":1e-07/);
  assert.ok(verifies(record, na.audience));
  const read = readMembershipAttestation(record);
  assert.ok(
    read !== null && isSignedByAny(read, [na.audience], verifySignature),
    'also when it is read again',
  );
});

test('members that a client sets on the record itself are ignored', async () => {
  const na = await shared();
  const answer = await attest(na, {
    attestation_id: 'mine',
    status: 'suspended',
    issued_at: '2020-01-01T00:00:00Z',
    expires_at: '2099-01-01T00:00:00Z',
    issued_by: 'me',
    signatures: [],
    unknown: 1,
  });
  assert.match(answer.body.attestation_id, UUID);
  assert.equal(answer.body.status, 'active');
  assert.equal(answer.body.issued_at, formatInstant(na.clock.now()));
  assert.equal(answer.body.issued_by, na.audience);
  assert.equal('unknown' in answer.body, false);
});

test('the configured label of the authority key is in issued_by and in the signature', async () => {
  await using na = await startTestAuthority({ environment: { NA_KEY_ID: 'na-2025-q1' } });
  const answer = await attest(na);
  assert.equal(answer.body.issued_by, 'na-2025-q1');
  assert.equal(answer.body.signatures[0].key_id, 'na-2025-q1');
  assert.ok(verifies(parsed(answer), na.audience));
});

for (const [name, value, hours] of [
  ['1', 1, 1],
  ['87600', 87_600, 87_600],
  ['the integral float 24.0', new JsonFloat(24), 24],
  ['the integral float 1e2', new JsonFloat(100), 100],
  ['the digit string "48"', '48', 48],
] as const) {
  test(`validity_hours takes ${name}`, async () => {
    await using na = await startTestAuthority();
    const { body } = await attest(na, { validity_hours: value });
    assert.equal(body.expires_at, formatInstant(na.clock.now() + hours * HOUR));
  });
}

for (const subject_public_key of [null, '', 'text']) {
  test(`subject_public_key takes ${JSON.stringify(subject_public_key)}`, async () => {
    await using na = await startTestAuthority();
    const { body } = await attest(na, { subject_public_key });
    assert.equal(body.subject_public_key, subject_public_key);
  });
}

test('a request that is wrong is refused with the code of the first thing wrong with it', async (t) => {
  await using na = await startTestAuthority();
  const noText = valuesExcept('a string');
  const noObject = valuesExcept('an object', 'an empty object', 'null');
  const nullableText = valuesExcept('a string', 'an empty string', 'null');
  const missing = '400 missing_attestation_subject';
  const role = '400 invalid_role';
  const hours = '400 invalid_validity_hours';
  const type = '422 request_validation_failed';
  const cases: [string, JsonObject, string][] = [
    ['nothing', { subject_id: null, roles: null }, missing],
    ['an empty subject_id', { subject_id: '' }, missing],
    ['no roles', { roles: [] }, missing],
    ...valuesExcept('a list', 'an empty list', 'an empty string').map(
      ([name, value]): [string, JsonObject, string] => [`${name} as roles`, { roles: value }, role],
    ),
    ...noText.map(([name, value]): [string, JsonObject, string] => [
      `${name} as a role`,
      { roles: ['role:client', value] },
      role,
    ]),
    ...['a b', 'rôle', 'role\n', 'x'.repeat(129), '\u007f'].map(
      (value): [string, JsonObject, string] => [
        `the role ${value.slice(0, 9)}`,
        { roles: [value] },
        role,
      ],
    ),
    ...WRONG_HOURS.map(([name, value]): [string, JsonObject, string] => [
      `${name} hours`,
      { validity_hours: value },
      hours,
    ]),
    ['87601 hours', { validity_hours: 87_601 }, hours],
    ['2 ** 70 hours', { validity_hours: 2n ** 70n }, hours],
    ...noObject.map(([name, value]): [string, JsonObject, string] => [
      `${name} as claims`,
      { claims: value },
      type,
    ]),
    ['1.0 as claims', { claims: new JsonFloat(1) }, type],
    ...nullableText.map(([name, value]): [string, JsonObject, string] => [
      `${name} as subject_public_key`,
      { subject_public_key: value },
      type,
    ]),
    ...nullableText.map(([name, value]): [string, JsonObject, string] => [
      `${name} as issuer_sovereign_id`,
      { issuer_sovereign_id: value },
      type,
    ]),
    // Adjacent pairs in the order of the checks [core-4-11].
    ['no subject, an invalid role', { subject_id: '', roles: ['a b'] }, missing],
    ['no roles, invalid hours', { roles: [], validity_hours: 0 }, missing],
    ['an invalid role, invalid hours', { roles: ['a b'], validity_hours: 0 }, role],
    ['a number as role, invalid hours', { roles: [7], validity_hours: 0 }, role],
    ['invalid hours, wrong claims', { validity_hours: 0, claims: [] }, hours],
    ['an invalid role, wrong claims', { roles: ['a b'], claims: [] }, role],
    ['everything', { subject_id: '', roles: [], validity_hours: 0, claims: [] }, missing],
  ];
  for (const [name, changes, expected] of cases) {
    await t.test(`${name}: ${expected}`, async () => {
      const answer = await attest(na, changes);
      assert.equal(outcome(answer), expected);
      if (expected === type) {
        const [error] = answer.body.error.details.errors;
        assert.deepEqual(error.loc.slice(0, 2), ['body', Object.keys(changes)[0]]);
      }
    });
  }
  for (const name of ['subject_id', 'roles']) {
    await t.test(`without ${name}: ${missing}`, async () => {
      const full: Record<string, JsonValue> = { subject_id: 'a', roles: ['role:client'] };
      delete full[name];
      assert.equal(outcome(await operate(na, ISSUE, full)), missing);
    });
  }
  assert.equal((await get(na, '/attestations')).body.count, 0);
  assert.deepEqual(auditEvents(na), []);
});

test('roles must begin with a configured prefix, if any are configured', async () => {
  await using na = await startTestAuthority({ environment: { MESH_ROLE_PREFIXES: 'role:client' } });
  assert.equal(outcome(await attest(na, { roles: ['role:client'] })), '200');
  assert.equal(outcome(await attest(na, { roles: ['role:anchor'] })), '400 invalid_role');
});

test('issuing in the name of another sovereign is allowed by default', async () => {
  const na = await shared();
  const answer = await attest(na, { issuer_sovereign_id: 'beta' });
  assert.equal(answer.body.issuer_sovereign_id, 'beta');
  assert.ok(verifies(parsed(answer), na.audience));
});

test('MESH_FOREIGN_ISSUER=refuse allows only our own name', async () => {
  await using na = await startTestAuthority({ environment: { MESH_FOREIGN_ISSUER: 'refuse' } });
  const refused = await attest(na, { issuer_sovereign_id: 'beta' });
  assert.equal(outcome(refused), '400 attestation_issuer_mismatch');
  assert.equal(
    outcome(await attest(na, { issuer_sovereign_id: 'beta', validity_hours: 0 })),
    '400 invalid_validity_hours',
    'the fields come first',
  );
  assert.equal(outcome(await attest(na, { issuer_sovereign_id: 'alpha' })), '200');
  assert.equal(outcome(await attest(na)), '200');
  assert.equal((await get(na, '/attestations')).body.count, 2);
});

test('an attestation is created with 201 where the network expects it, a revocation never', async () => {
  await using na = await startTestAuthority({ environment: { MESH_CREATED_STATUS: '201' } });
  const answer = await attest(na);
  assert.equal(answer.status, 201);
  assert.equal((await revokeAttestation(na, answer.body.attestation_id)).status, 200);
  assert.equal(outcome(await attest(na, { roles: [] })), '400 missing_attestation_subject');
});

// Revocation

test('a revocation returns the id, and the signed attestation is not rewritten', async () => {
  await using na = await startTestAuthority();
  const attestation = await issued(attest(na));
  const before = parsed(await get(na, rowPath(attestation.attestation_id)));
  na.clock.advance(MINUTE);
  const answer = await revoke(na, attestation, { reason: 'left the network' });
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body, { attestation_id: attestation.attestation_id, status: 'revoked' });
  const row = parsed(await get(na, rowPath(attestation.attestation_id)));
  assert.deepEqual(row, {
    ...before,
    attestation,
    status: 'revoked',
    revoked_at: formatInstant(na.clock.now()),
    revocation_reason: 'left the network',
  });
  assert.ok(verifies(row.attestation as JsonObject, na.audience));
});

test('a revocation without a reason is unspecified', async () => {
  const na = await shared();
  const attestation = await issued(attest(na));
  await revoke(na, attestation);
  const { body } = await get(na, rowPath(attestation.attestation_id));
  assert.equal(body.revocation_reason, 'unspecified');
});

for (const reason of ['', 'Zürich ✓ 😀', '\u0000', 'x'.repeat(1024)]) {
  test(`any text of up to 1,024 characters is accepted as a reason: ${JSON.stringify(reason.slice(0, 9))}`, async () => {
    await using na = await startTestAuthority();
    const attestation = await issued(attest(na));
    assert.equal(outcome(await revoke(na, attestation, { reason })), '200');
    const { body } = await get(na, rowPath(attestation.attestation_id));
    assert.equal(body.revocation_reason, reason);
    const feed = (await get(na, '/sovereign-revocation-feed')).body;
    assert.equal(feed.revocation_reasons[String(attestation.attestation_id)], reason);
  });
}

for (const [name, reason] of valuesExcept('a string', 'an empty string', 'null')) {
  test(`${name} as reason is 422, and the attestation stays active`, async () => {
    await using na = await startTestAuthority();
    const attestation = await issued(attest(na));
    const answer = await revoke(na, attestation, { reason });
    assert.equal(outcome(answer), '422 request_validation_failed');
    assert.deepEqual(answer.body.error.details.errors[0].loc, ['body', 'reason']);
    assert.equal((await get(na, rowPath(attestation.attestation_id))).body.status, 'active');
    assert.equal((await get(na, '/sovereign-revocation-feed')).body.sequence, 0);
  });
}

test('the first revocation counts: a repeat reports that and changes nothing', async () => {
  await using na = await startTestAuthority();
  const attestation = await issued(attest(na));
  await revoke(na, attestation, { reason: 'first' });
  const row = (await get(na, rowPath(attestation.attestation_id))).text;
  const feed = (await get(na, '/sovereign-revocation-feed')).text;
  na.clock.advance(HOUR);
  for (const reason of ['second', 'first']) {
    const answer = await revoke(na, attestation, { reason });
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, {
      attestation_id: attestation.attestation_id,
      status: 'revoked',
      already_revoked: true,
    });
  }
  assert.equal((await get(na, rowPath(attestation.attestation_id))).text, row);
  assert.equal((await get(na, '/sovereign-revocation-feed')).text, feed);
  assert.deepEqual(audited(na, 'membership_attestation_revoked'), [
    { attestation_id: attestation.attestation_id, reason: 'first' },
  ]);
});

test('20 simultaneous revocations revoke once', async () => {
  await using na = await startTestAuthority();
  const attestation = await issued(attest(na));
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => revoke(na, attestation, { reason: `reason ${n}` })),
  );
  const first = answers.filter(({ body }) => body.already_revoked === undefined);
  assert.equal(first.length, 1);
  assert.equal((await get(na, '/sovereign-revocation-feed')).body.sequence, 1);
  assert.equal(audited(na, 'membership_attestation_revoked').length, 1);
});

for (const id of ['nobody', '__proto__', 'a/b', ' ', 'ü']) {
  test(`revoking or reading the attestation ${JSON.stringify(id)} is 404`, async () => {
    await using na = await startTestAuthority();
    await attest(na);
    assert.equal(outcome(await revokeAttestation(na, id)), '404 attestation_not_found');
    assert.equal(outcome(await get(na, rowPath(id))), '404 attestation_not_found');
    assert.deepEqual(audited(na, 'membership_attestation_revoked'), []);
  });
}

// Lists

test('the list of a network without attestations is empty', async () => {
  await using na = await startTestAuthority();
  assert.equal((await get(na, '/attestations')).text, '{"count":0,"attestations":[]}');
});

test('attestations are listed oldest first, each with its current state', async () => {
  await using na = await startTestAuthority();
  const made: JsonObject[] = [];
  for (let n = 0; n < 4; n += 1) {
    made.push(
      await issued(attest(na, { subject_id: `agent-${n}`, claims: { n: new JsonFloat(n) } })),
    );
    na.clock.advance(SECOND);
  }
  await revoke(na, made[1], { reason: 'left' });
  const revoked_at = formatInstant(na.clock.now());
  const list = parsed(await get(na, '/attestations'));
  assert.deepEqual(list, {
    count: 4,
    attestations: made.map((attestation, n) => ({
      attestation,
      status: n === 1 ? 'revoked' : 'active',
      revoked_at: n === 1 ? revoked_at : null,
      revocation_reason: n === 1 ? 'left' : null,
    })),
  });
  for (const row of list.attestations as readonly JsonObject[]) {
    const { attestation_id } = row.attestation as JsonObject;
    assert.deepEqual(parsed(await get(na, rowPath(attestation_id))), row);
  }
});

test('an attestation that has expired is still listed as active', async () => {
  await using na = await startTestAuthority();
  await attest(na, { validity_hours: 1 });
  na.clock.advance(DAY);
  assert.equal((await get(na, '/attestations?status=active')).body.count, 1);
});

test('filters are exact and must all match; an unknown value finds nothing', async (t) => {
  await using na = await startTestAuthority();
  for (const [subject_id, issuer_sovereign_id] of [
    ['a', 'alpha'],
    ['a', 'beta'],
    ['b', 'alpha'],
    ['a%', 'alpha'],
  ] as const) {
    na.clock.advance(1);
    const attestation = await issued(attest(na, { subject_id, issuer_sovereign_id }));
    if (subject_id === 'b') await revoke(na, attestation);
  }
  for (const [query, found] of [
    ['', ['a alpha', 'a beta', 'b alpha', 'a% alpha']],
    ['subject_id=a', ['a alpha', 'a beta']],
    ['subject_id=a%25', ['a% alpha']],
    ['subject_id=%25', []],
    ['subject_id=A', []],
    ['issuer_sovereign_id=alpha', ['a alpha', 'b alpha', 'a% alpha']],
    ['issuer_sovereign_id=beta', ['a beta']],
    ['issuer_sovereign_id=gamma', []],
    ['status=active', ['a alpha', 'a beta', 'a% alpha']],
    ['status=revoked', ['b alpha']],
    ['status=suspended', []],
    ['status=ACTIVE', []],
    ['status=__proto__', []],
    ['subject_id=a&issuer_sovereign_id=alpha', ['a alpha']],
    ['subject_id=b&status=active', []],
    ['subject_id=b&status=revoked&issuer_sovereign_id=alpha', ['b alpha']],
    ['unknown=1', ['a alpha', 'a beta', 'b alpha', 'a% alpha']],
  ] as const) {
    await t.test(query || 'no filter', async () => {
      const { body } = await get(na, `/attestations?${query}`);
      const names = body.attestations.map(
        ({ attestation }: { attestation: JsonObject }) =>
          `${attestation.subject_id} ${attestation.issuer_sovereign_id}`,
      );
      assert.deepEqual(names, found);
      assert.equal(body.count, found.length);
    });
  }
});

// Access and audit

test('issuing and revoking require the privileged tier, which is checked before the body is read', async () => {
  await using na = await startTestAuthority();
  const attestation = await issued(attest(na));
  for (const [path, body] of [
    [ISSUE, { subject_id: 'a', roles: ['role:client'] }],
    [ISSUE, {}],
    [`${ISSUE}/${attestation.attestation_id}/revoke`, {}],
    [`${ISSUE}/${attestation.attestation_id}/revoke`, { reason: 7 }],
    [`${ISSUE}/nobody/revoke`, {}],
  ] as [string, JsonObject][]) {
    const standard = await operate(na, path, body, { operator: na.standard });
    assert.equal(outcome(standard), '403 insufficient_operator_tier');
    const stranger = { keyId: na.privileged.keyId, key: newKey() };
    const unknown = await operate(na, path, body, { operator: stranger });
    assert.equal(outcome(unknown), '401 admin_auth_failed');
  }
  const { body } = await get(na, '/attestations');
  assert.deepEqual([body.count, body.attestations[0].status], [1, 'active']);
});

test('issuing and revoking are audited', async () => {
  await using na = await startTestAuthority();
  const { attestation_id } = await issued(attest(na, { roles: ['role:a', 'role:b'] }));
  await revokeAttestation(na, attestation_id, { reason: 'left' });
  assert.deepEqual(auditEvents(na), [
    {
      type: 'membership_attestation_issued',
      details: {
        attestation_id,
        issuer_sovereign_id: 'alpha',
        subject_id: 'agent-7',
        roles: ['role:a', 'role:b'],
      },
    },
    { type: 'membership_attestation_revoked', details: { attestation_id, reason: 'left' } },
  ]);
});

function rowPath(id: JsonValue | undefined): string {
  return `/attestations/${encodeURIComponent(String(id))}`;
}

function revoke(
  na: TestAuthority,
  attestation: JsonObject | undefined,
  body?: JsonObject,
): Promise<Received> {
  return revokeAttestation(na, attestation?.attestation_id, body);
}

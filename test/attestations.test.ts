/**
 * Membership attestations that the authority issues [service-states-attestation], [core-4-11], [core-5-7], [core-5-11];
 * `issued-records.test.ts` has what they share with treaties.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { readMembershipAttestation } from '../src/protocol/records/recognition.ts';
import { isSignedByAny } from '../src/protocol/records/signed-record.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { valuesExcept, WRONG_HOURS } from './support/hostile.ts';
import { auditEvents, get, operate, outcome, type Received } from './support/requests.ts';
import { type Cases, checkTable, inEach } from './support/tables.ts';
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

const FEED = '/sovereign-revocation-feed';

test('an attestation without further terms has all defaults, and is signed by the authority', async () => {
  const na = await shared();
  na.clock.advance(1234);
  // What a client sets on the record itself is ignored.
  for (const ignored of [
    {},
    { attestation_id: 'mine', status: 'suspended', issued_by: 'me', signatures: [], unknown: 1 },
    { issued_at: '2020-01-01T00:00:00Z', expires_at: '2099-01-01T00:00:00Z' },
  ] as JsonObject[]) {
    const answer = await attest(na, ignored);
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
  }
});

test('an attestation contains what the operator chose, with numbers in claims token for token', async () => {
  const na = await shared();
  const claims = parseJson(
    '{"limit":1.0,"n":10,"tiny":1e-7,"big":1000000000000000000000000000000,"at":"2026-01-01T00:00:00+00:00","name":"Z\\u00fcrich \\u2713 \\ud83d\\ude00","__proto__":{"x":[1.50,null,true]}}',
  ) as JsonObject;
  const terms = {
    subject_id: 'ägent ✓',
    roles: ['role:client', 'anything', 'role:client'],
    subject_public_key: 'a placeholder, not a key',
    claims,
    issuer_sovereign_id: 'beta',
  };
  const answer = await attest(na, { ...terms, validity_hours: 3 });
  const record = parsed(answer);
  for (const [name, value] of Object.entries(terms)) assert.deepEqual(record[name], value, name);
  assert.equal(record.expires_at, formatInstant(na.clock.now() + 3 * HOUR));
  assert.match(answer.text, /"limit":1\.0,/);
  assert.match(answer.text, /"big":1000000000000000000000000000000,/);
  assert.match(answer.text, /"tiny":1e-07/);
  const page = await get(na, `/attestation?id=${record.attestation_id}`);
  assert.match(page.text, /"big":1000000000000000000000000000000,"limit":1\.0,/);
  assert.ok(verifies(record, na.audience));
  const read = readMembershipAttestation(record);
  assert.ok(
    read !== null && isSignedByAny(read, [na.audience], verifySignature),
    'also when it is read again',
  );
  for (const [validity_hours, hours] of [
    [1, 1],
    [87_600, 87_600],
    [new JsonFloat(24), 24],
    [new JsonFloat(100), 100],
    ['48', 48],
  ] as const) {
    const { body } = await attest(na, { validity_hours });
    assert.equal(body.expires_at, formatInstant(na.clock.now() + hours * HOUR));
  }
  for (const subject_public_key of [null, '', 'text']) {
    const { body } = await attest(na, { subject_public_key });
    assert.equal(body.subject_public_key, subject_public_key);
  }
});

test('a request that is wrong is refused with the code of the first thing wrong with it', async () => {
  await using na = await startTestAuthority();
  const nullableText = valuesExcept('a string', 'an empty string', 'null');
  const roles = (values: readonly (readonly [string, JsonValue])[]): Cases<JsonObject> =>
    inEach('roles', values);
  await checkTable(
    {
      '400 missing_attestation_subject': {
        nothing: { subject_id: null, roles: null },
        'an empty subject': { subject_id: '' },
        'no roles': { roles: [] },
        // Adjacent pairs in the order of the checks [core-4-11].
        'no subject, an invalid role': { subject_id: '', roles: ['a b'] },
        'no roles, invalid hours': { roles: [], validity_hours: 0 },
        everything: { subject_id: '', roles: [], validity_hours: 0, claims: [] },
      },
      '400 invalid_role': {
        ...roles(valuesExcept('a list', 'an empty list', 'an empty string')),
        ...roles(
          valuesExcept('a string').map(([name, value]) => [`[${name}]`, ['role:client', value]]),
        ),
        ...roles(
          ['a b', 'rôle', 'role\n', 'x'.repeat(129), '\u007f'].map((role) => [role, [role]]),
        ),
        'an invalid role, invalid hours': { roles: ['a b'], validity_hours: 0 },
        'a number as role, invalid hours': { roles: [7], validity_hours: 0 },
        'an invalid role, wrong claims': { roles: ['a b'], claims: [] },
      },
      '400 invalid_validity_hours': {
        ...inEach('validity_hours', WRONG_HOURS),
        'one hour too many': { validity_hours: 87_601 },
        '2 ** 70 hours': { validity_hours: 2n ** 70n },
        'invalid hours, wrong claims': { validity_hours: 0, claims: [] },
      },
      '422 request_validation_failed': {
        ...inEach('claims', valuesExcept('an object', 'an empty object', 'null')),
        'claims are 1.0': { claims: new JsonFloat(1) },
        ...inEach('subject_public_key', nullableText),
        ...inEach('issuer_sovereign_id', nullableText),
      },
    },
    async (changes: JsonObject) => {
      const answer = await attest(na, changes);
      if (answer.status === 422) {
        const [error] = answer.body.error.details.errors;
        assert.deepEqual(error.loc.slice(0, 2), ['body', Object.keys(changes)[0]]);
      }
      return outcome(answer);
    },
  );
  for (const body of [{ subject_id: 'a' }, { roles: ['role:client'] }]) {
    const answer = await operate(na, '/admin/attestations', body);
    assert.equal(outcome(answer), '400 missing_attestation_subject');
  }
  assert.equal((await get(na, '/attestations')).text, '{"count":0,"attestations":[]}');
  assert.deepEqual(auditEvents(na), []);
});

// Revocation

test('the first revocation counts: it is audited and in the feed, and the signed record stays as it was', async () => {
  await using na = await startTestAuthority();
  const attestation = await issued(attest(na, { roles: ['role:a', 'role:b'] }));
  const { attestation_id } = attestation;
  const read = async () => parsed(await get(na, rowPath(attestation_id)));
  const before = await read();
  na.clock.advance(MINUTE);
  const done = { attestation_id, status: 'revoked' };
  const answer = await revoke(na, attestation, { reason: 'left the network' });
  assert.deepEqual([answer.status, answer.body], [200, done]);
  const expected = {
    ...before,
    attestation,
    status: 'revoked',
    revoked_at: formatInstant(na.clock.now()),
    revocation_reason: 'left the network',
  };
  assert.deepEqual(await read(), expected);
  const feed = (await get(na, FEED)).text;
  na.clock.advance(HOUR);
  for (const reason of ['second', 'left the network']) {
    const repeated = await revoke(na, attestation, { reason });
    assert.deepEqual([repeated.status, repeated.body], [200, { ...done, already_revoked: true }]);
  }
  assert.deepEqual(await read(), expected);
  assert.equal((await get(na, FEED)).text, feed);
  const about = {
    issuer_sovereign_id: 'alpha',
    subject_id: 'agent-7',
    roles: ['role:a', 'role:b'],
  };
  assert.deepEqual(auditEvents(na), [
    { type: 'membership_attestation_issued', details: { attestation_id, ...about } },
    {
      type: 'membership_attestation_revoked',
      details: { attestation_id, reason: 'left the network' },
    },
  ]);
});

test('the reason of a revocation is any text of up to 1,024 characters, or unspecified', async () => {
  await using na = await startTestAuthority();
  for (const reason of [undefined, '', 'Zürich ✓ 😀', '\u0000', 'x'.repeat(1024)]) {
    const attestation = await issued(attest(na));
    const body = reason === undefined ? undefined : { reason };
    assert.equal(outcome(await revoke(na, attestation, body)), '200');
    const kept = reason ?? 'unspecified';
    const row = (await get(na, rowPath(attestation.attestation_id))).body;
    assert.equal(row.revocation_reason, kept);
    const feed = (await get(na, FEED)).body;
    assert.equal(feed.revocation_reasons[String(attestation.attestation_id)], kept);
  }
  assert.equal(audited(na, 'membership_attestation_revoked').length, 5);
});

test('20 simultaneous revocations revoke once', async () => {
  await using na = await startTestAuthority();
  const attestation = await issued(attest(na));
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => revoke(na, attestation, { reason: `reason ${n}` })),
  );
  const first = answers.filter(({ body }) => body.already_revoked === undefined);
  assert.equal(first.length, 1);
  assert.equal((await get(na, FEED)).body.sequence, 1);
  assert.equal(audited(na, 'membership_attestation_revoked').length, 1);
});

// Lists

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

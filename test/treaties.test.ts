/**
 * Recognition treaties [service-states-treaty], [core-4-13], [core-5-9], [core-5-11], [core-6-1]; `issued-records.test.ts`
 * has what they share with attestations.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { readRecognitionTreaty } from '../src/protocol/records/recognition.ts';
import { isSignedByAny } from '../src/protocol/records/signed-record.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { valuesExcept, WRONG_HOURS } from './support/hostile.ts';
import { auditEvents, get, newKey, operate, outcome } from './support/requests.ts';
import { checkTable, inEach } from './support/tables.ts';
import {
  audited,
  issued,
  parsed,
  recognize,
  revokeTreaty,
  UUID,
  verifies,
} from './support/trust.ts';

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority();

const ISSUE = '/admin/recognition-treaties';
const key = newKey().publicKey;

test('a treaty without further terms has all defaults, and is signed by the authority', async () => {
  const na = await shared();
  na.clock.advance(1234);
  // What a client sets on the record itself is ignored.
  for (const ignored of [
    {},
    { treaty_id: 'mine', status: 'revoked', issued_by: 'me', signatures: 7, unknown: 1 },
    { valid_from: '2020-01-01T00:00:00Z' },
  ] as JsonObject[]) {
    const answer = await recognize(na, { subject_public_keys: [key], ...ignored });
    assert.equal(answer.status, 200);
    const { treaty_id, signatures, ...rest } = answer.body;
    assert.match(treaty_id, UUID);
    const now = formatInstant(na.clock.now());
    assert.deepEqual(rest, {
      issuer_sovereign_id: 'alpha',
      subject_sovereign_id: 'beta',
      subject_public_keys: [key],
      scope: { allowed_roles: [], accepted_statuses: ['active'], claims: {} },
      status: 'active',
      issued_at: now,
      valid_from: now,
      expires_at: formatInstant(na.clock.now() + 168 * HOUR),
      issued_by: na.audience,
      metadata: {},
    });
    assert.deepEqual(
      signatures.map(({ key_id }: { key_id: string }) => key_id),
      [na.audience],
    );
    assert.ok(verifies(parsed(answer), na.audience));
  }
});

test('a treaty contains what the operator chose, with numbers in claims and metadata token for token', async () => {
  const na = await shared();
  const free = parseJson(
    '{"limit":1.0,"n":10,"big":18446744073709551616,"at":"2026-01-01T00:00:00+00:00","Z\\u00fcrich":[1e-7]}',
  ) as JsonObject;
  const terms = {
    issuer_sovereign_id: 'gamma',
    subject_sovereign_id: 'bêta ✓',
    subject_public_keys: [key, newKey().publicKey, key],
    scope: {
      allowed_roles: ['role:client', 'role:client'],
      accepted_statuses: ['suspended', 'active'],
      claims: free,
    },
    metadata: free,
  };
  const answer = await recognize(na, { ...terms, validity_hours: 5 });
  const record = parsed(answer);
  for (const [name, value] of Object.entries(terms)) assert.deepEqual(record[name], value, name);
  assert.equal(record.expires_at, formatInstant(na.clock.now() + 5 * HOUR));
  assert.match(answer.text, /"metadata":\{[^}]*"limit":1\.0,/);
  assert.ok(verifies(record, na.audience));
  const read = readRecognitionTreaty(record);
  assert.ok(
    read !== null && isSignedByAny(read, [na.audience], verifySignature),
    'also when it is read again',
  );
  const defaults = { allowed_roles: [], accepted_statuses: ['active'], claims: {} };
  for (const [scope, expected] of [
    [{}, {}],
    [{ allowed_roles: ['role:a'] }, { allowed_roles: ['role:a'] }],
    [{ accepted_statuses: [] }, { accepted_statuses: [] }],
    [{ claims: { a: 1 }, extra: true }, { claims: { a: 1 } }],
  ] as [JsonObject, JsonObject][]) {
    assert.deepEqual((await recognize(na, { scope })).body.scope, { ...defaults, ...expected });
  }
  for (const [validity_hours, hours] of [
    [1, 1],
    [87_600, 87_600],
    [new JsonFloat(24), 24],
    ['48', 48],
  ] as const) {
    const { body } = await recognize(na, { validity_hours });
    assert.equal(body.expires_at, formatInstant(na.clock.now() + hours * HOUR));
  }
});

test('a request that is wrong is refused with the code of the first thing wrong with it', async () => {
  await using na = await startTestAuthority();
  const noText = valuesExcept('a string', 'an empty string');
  const noList = valuesExcept('a list', 'an empty list');
  const noObjectNorNull = valuesExcept('an object', 'an empty object', 'null');
  const float = new JsonFloat(1);
  const wrongScope = { accepted_statuses: ['gone'] };
  const wrongRole = { allowed_roles: ['a b'] };
  /** Cases of one value within another member. */
  const within = (
    member: string,
    values: readonly (readonly [string, JsonValue])[],
    wrap: (value: JsonValue) => JsonValue,
  ) =>
    inEach(
      member,
      values.map(([name, value]) => [`with ${name}`, wrap(value)]),
    );
  const texts = (...values: readonly string[]) => values.map((value) => [value, value] as const);
  await checkTable(
    {
      '400 missing_treaty_subject': {
        ...inEach('subject_sovereign_id', [...valuesExcept('a string'), ...texts('')]),
        ...inEach('subject_public_keys', noList),
        ...within('subject_public_keys', noText, (value) => [key, value]),
        // Adjacent pairs of the order [core-4-13].
        'no subject, no keys': { subject_sovereign_id: '', subject_public_keys: [] },
        'a number as subject, no keys': { subject_sovereign_id: 7, subject_public_keys: [] },
        'wrong keys, a wrong scope': { subject_public_keys: [7], scope: wrongScope },
      },
      '400 empty_subject_public_keys': {
        'no keys': { subject_public_keys: [] },
        'no keys, a wrong scope': { subject_public_keys: [], scope: wrongScope },
      },
      '400 invalid_public_keys': {
        ...within(
          'subject_public_keys',
          texts('', '!!', key.slice(1), `${key} `, key.replace('=', ''), 'x'.repeat(2000)),
          (value) => [key, value],
        ),
        'a key that is none, a wrong scope': { subject_public_keys: ['!!'], scope: wrongScope },
      },
      '422 invalid_treaty_scope': {
        ...inEach('scope', [...noObjectNorNull, ['1.0', float]]),
        ...within('scope', noList, (allowed_roles) => ({ allowed_roles })),
        ...within('scope', noText, (role) => ({ allowed_roles: [role] })),
        ...within('scope', noList, (accepted_statuses) => ({ accepted_statuses })),
        ...within(
          'scope',
          ['gone', 'Active', '', 7, null].map((status) => [`the status ${status}`, status]),
          (status) => ({ accepted_statuses: ['active', status] }),
        ),
        ...within(
          'scope',
          [...valuesExcept('an object', 'an empty object'), ['1.0', float]],
          (claims) => ({ claims }),
        ),
        'a wrong scope with a wrong role': { scope: { ...wrongScope, ...wrongRole } },
        'a wrong scope, wrong hours': { scope: wrongScope, validity_hours: 0 },
      },
      '400 invalid_role': {
        ...within('scope', texts('', 'a b', 'rôle', 'x'.repeat(129)), (role) => ({
          allowed_roles: ['role:client', role],
        })),
        'a wrong role, wrong hours': { scope: wrongRole, validity_hours: 0 },
        'a wrong role, wrong metadata': { scope: wrongRole, metadata: [] },
      },
      '400 invalid_validity_hours': {
        ...inEach('validity_hours', [...WRONG_HOURS, ['87601', 87_601]]),
        'wrong hours, wrong metadata': { validity_hours: 0, metadata: [] },
      },
      '422 request_validation_failed': {
        ...inEach('metadata', [...noObjectNorNull, ['1.0', float]]),
        ...inEach('issuer_sovereign_id', valuesExcept('a string', 'an empty string', 'null')),
      },
    },
    async (changes: JsonObject) => {
      const answer = await recognize(na, changes);
      if (outcome(answer) === '422 request_validation_failed') {
        const [error] = answer.body.error.details.errors;
        assert.deepEqual(error.loc.slice(0, 2), ['body', Object.keys(changes)[0]]);
      }
      return outcome(answer);
    },
  );
  for (const [body, expected] of [
    [{}, '400 missing_treaty_subject'],
    [{ subject_public_keys: [key] }, '400 missing_treaty_subject'],
    [{ subject_sovereign_id: 'beta' }, '400 empty_subject_public_keys'],
  ] as const) {
    assert.equal(outcome(await operate(na, ISSUE, body)), expected);
  }
  const list = await get(na, '/recognition-treaties');
  assert.equal(list.text, '{"count":0,"recognition_treaties":[]}');
  assert.deepEqual(auditEvents(na), []);
});

// Revocation

test('a revocation is audited each time, may give another reason, and never rewrites what is signed', async () => {
  await using na = await startTestAuthority();
  const scope = { allowed_roles: ['role:a', 'role:b'] };
  const treaty = await issued(recognize(na, { scope }));
  const { treaty_id } = treaty;
  na.clock.advance(MINUTE);
  const revoked_at = formatInstant(na.clock.now());
  const reasons: string[] = [];
  for (const [body, reason] of [
    [{ reason: 'ended' }, 'ended'],
    [{ reason: 'renewed_by:t-2' }, 'renewed_by:t-2'],
    [{ reason: 'ended again' }, 'ended again'],
    [{}, 'unspecified'],
    [{ reason: 'unspecified' }, 'unspecified'],
  ] as const) {
    const answer = await revokeTreaty(na, treaty_id, body);
    assert.deepEqual([answer.status, answer.body], [200, { treaty_id, status: 'revoked' }]);
    const row = await rowOf(na, treaty);
    assert.deepEqual(
      [row.treaty, row.status, row.revoked_at, row.revocation_reason],
      [treaty, 'revoked', revoked_at, reason],
    );
    na.clock.advance(HOUR);
    reasons.push(reason);
  }
  assert.deepEqual(auditEvents(na), [
    {
      type: 'recognition_treaty_issued',
      details: {
        ...{ treaty_id, issuer_sovereign_id: 'alpha', subject_sovereign_id: 'beta' },
        ...scope,
      },
    },
    ...reasons.map((reason) => ({
      type: 'recognition_treaty_revoked',
      details: { treaty_id, reason },
    })),
  ]);
});

// Endpoints

const setEndpoint = (na: TestAuthority, id: JsonValue | undefined, body: JsonObject) =>
  operate(na, `${ISSUE}/${id}/endpoint`, body);

test('an endpoint is kept with the treaty, also after a restart, and changes nothing that is signed', async () => {
  await using na = await startTestAuthority();
  const endpoint = 'https://na.beta.example/base';
  const treaty = await issued(recognize(na, { endpoint }));
  assert.equal('endpoint' in treaty, false);
  const path = `/recognition-treaties/${treaty.treaty_id}`;
  const row = parsed(await get(na, path));
  assert.deepEqual([row.endpoint, row.treaty], [endpoint, treaty]);
  assert.equal(audited(na, 'recognition_treaty_issued')[0]?.endpoint, endpoint);

  const other = 'http://127.0.0.1:8443';
  const answer = await setEndpoint(na, treaty.treaty_id, { endpoint: other });
  assert.deepEqual(parsed(answer), { treaty_id: treaty.treaty_id, endpoint: other });
  await using again = await na.restart();
  const later = parsed(await get(again, path));
  assert.deepEqual([later.endpoint, later.treaty], [other, treaty]);
  assert.equal(outcome(await setEndpoint(again, treaty.treaty_id, {})), '200');
  assert.equal('endpoint' in parsed(await get(again, path)), false);

  assert.equal(outcome(await setEndpoint(again, 'unknown', {})), '404 treaty_not_found');
  await revokeTreaty(again, treaty.treaty_id);
  assert.equal(outcome(await setEndpoint(again, treaty.treaty_id, {})), '409 treaty_revoked');
});

const renew = (na: TestAuthority, id: JsonValue | undefined, body: JsonObject = {}) =>
  operate(na, `${ISSUE}/${id}/renew`, body);

test('a renewed treaty has scope, keys, metadata and endpoint of the one that it replaces', async () => {
  await using na = await startTestAuthority();
  const terms = {
    scope: { allowed_roles: ['role:client'], accepted_statuses: ['active'], claims: { a: 1 } },
    metadata: { root_public_key: key },
    endpoint: 'https://na.beta.example',
  };
  const treaty = await issued(recognize(na, { ...terms, validity_hours: 2 }));
  na.clock.advance(3 * HOUR);
  const successor = await issued(renew(na, treaty.treaty_id, { validity_hours: 48 }));
  for (const name of ['subject_sovereign_id', 'subject_public_keys', 'scope', 'metadata']) {
    assert.deepEqual(successor[name], treaty[name], name);
  }
  assert.equal(successor.expires_at, formatInstant(na.clock.now() + 48 * HOUR));
  assert.ok(verifies(successor, na.audience));
  const row = (await get(na, `/recognition-treaties/${successor.treaty_id}`)).body;
  assert.deepEqual([row.lifecycle.state, row.endpoint], ['expiring_soon', terms.endpoint]);
  const { lifecycle } = (await get(na, `/recognition-treaties/${treaty.treaty_id}`)).body;
  assert.deepEqual(
    [lifecycle.state, lifecycle.replacement_treaty_id],
    ['replaced', successor.treaty_id],
  );
  assert.equal(audited(na, 'recognition_treaty_issued')[1]?.treaty_id, successor.treaty_id);
  assert.deepEqual(audited(na, 'recognition_treaty_revoked'), [
    { treaty_id: treaty.treaty_id, reason: `renewed_by:${successor.treaty_id}` },
  ]);

  const other = newKey().publicKey;
  const last = await issued(renew(na, successor.treaty_id, { subject_public_keys: [other] }));
  assert.deepEqual(last.subject_public_keys, [other]);
  assert.equal(outcome(await renew(na, successor.treaty_id)), '409 treaty_revoked');
  assert.equal(outcome(await renew(na, 'unknown')), '404 treaty_not_found');
  for (const [name, value] of [...WRONG_HOURS]) {
    const answer = await renew(na, last.treaty_id, { validity_hours: value });
    assert.equal(outcome(answer), '400 invalid_validity_hours', name);
  }
  const wrong = { subject_public_keys: [] };
  assert.equal(outcome(await renew(na, last.treaty_id, wrong)), '400 invalid_public_keys');
});

test('an endpoint is an address of HTTP without user, query or fragment', async () => {
  const na = await shared();
  for (const endpoint of [
    ...['', 'na.beta.example', 'ftp://na.beta.example', 'https://user@na.beta.example'],
    ...['https://na.beta.example?token=x', 'https://na.beta.example#x', 7, ['https://a.example']],
    ...['https://na.beta.example/?', 'https://na.beta.example/#', 'https:na.beta.example'],
    ...['https://na.beta.example ', ' https://na.beta.example', 'https://na.beta.\nexample'],
    ...['https://na.beta.example\u0007', 'https://na.beta.example\\'],
    `https://na.beta.example/${'x'.repeat(2048)}`,
  ]) {
    const name = JSON.stringify(endpoint).slice(0, 40);
    assert.equal(outcome(await recognize(na, { endpoint })), '400 invalid_endpoint', name);
    assert.equal(outcome(await setEndpoint(na, 'any', { endpoint })), '400 invalid_endpoint', name);
  }
});

// Lists

test('treaties are listed oldest first, each row with its lifecycle', async () => {
  await using na = await startTestAuthority();
  const made: JsonObject[] = [];
  for (let n = 0; n < 4; n += 1) {
    made.push(
      await issued(recognize(na, { subject_sovereign_id: `s-${n}`, validity_hours: 1 + n * 48 })),
    );
    na.clock.advance(SECOND);
  }
  await revokeTreaty(na, made[3]?.treaty_id, { reason: 'replaced_by:t-9' });
  const list = parsed(await get(na, '/recognition-treaties'));
  const rows = list.recognition_treaties as readonly JsonObject[];
  assert.equal(list.count, 4);
  assert.deepEqual(
    rows.map(({ treaty }) => treaty),
    made,
  );
  const now = na.clock.now();
  assert.deepEqual(rows[0], {
    treaty: made[0],
    status: 'active',
    revoked_at: null,
    revocation_reason: null,
    lifecycle: {
      state: 'expiring_soon',
      expiry_risk: 'high',
      seconds_until_expiry: 3596,
      expires_at: formatInstant(now - 4 * SECOND + HOUR),
      revoked_at: null,
      revocation_reason: null,
      replacement_treaty_id: null,
    },
  });
  assert.deepEqual(rows[3], {
    treaty: made[3],
    status: 'revoked',
    revoked_at: formatInstant(now),
    revocation_reason: 'replaced_by:t-9',
    lifecycle: {
      state: 'replaced',
      expiry_risk: 'none',
      seconds_until_expiry: null,
      expires_at: formatInstant(now - SECOND + 145 * HOUR),
      revoked_at: formatInstant(now),
      revocation_reason: 'replaced_by:t-9',
      replacement_treaty_id: 't-9',
    },
  });
  for (const row of rows) {
    const { treaty_id } = row.treaty as JsonObject;
    assert.deepEqual(parsed(await get(na, rowPath(treaty_id))), row);
  }
});

// Lifecycle [core-6-1]

test('the lifecycle of a treaty follows the clock, in whole seconds', async () => {
  await using na = await startTestAuthority();
  const hours = 100;
  const treaty = await issued(recognize(na, { validity_hours: hours }));
  const expiry = na.clock.now() + hours * HOUR;
  for (const [left, state, expiry_risk, seconds_until_expiry] of [
    [hours * HOUR, 'active', 'low', hours * 3600],
    [hours * HOUR - 1, 'active', 'low', hours * 3600 - 1],
    [72 * HOUR + SECOND, 'active', 'low', 72 * 3600 + 1],
    [72 * HOUR + SECOND - 1, 'expiring_soon', 'medium', 72 * 3600],
    [72 * HOUR, 'expiring_soon', 'medium', 72 * 3600],
    [72 * HOUR - 1, 'expiring_soon', 'medium', 72 * 3600 - 1],
    [24 * HOUR + SECOND, 'expiring_soon', 'medium', 24 * 3600 + 1],
    [24 * HOUR + SECOND - 1, 'expiring_soon', 'high', 24 * 3600],
    [24 * HOUR, 'expiring_soon', 'high', 24 * 3600],
    [SECOND, 'expiring_soon', 'high', 1],
    [SECOND - 1, 'expired', 'expired', 0],
    [1, 'expired', 'expired', 0],
    [0, 'expired', 'expired', 0],
    [-1, 'expired', 'expired', 0],
    [-SECOND, 'expired', 'expired', 0],
    [-1000 * HOUR, 'expired', 'expired', 0],
  ] as const) {
    na.clock.advance(expiry - left - na.clock.now());
    const row = await rowOf(na, treaty);
    assert.equal(row.status, 'active', 'the persisted status never changes by time');
    assert.deepEqual(
      row.lifecycle,
      {
        state,
        expiry_risk,
        seconds_until_expiry,
        expires_at: formatInstant(expiry),
        revoked_at: null,
        revocation_reason: null,
        replacement_treaty_id: null,
      },
      `${left} ms before its expiry`,
    );
  }
  assert.equal(outcome(await revokeTreaty(na, treaty.treaty_id)), '200', 'long after its expiry');
  assert.equal(((await rowOf(na, treaty)).lifecycle as JsonObject).state, 'revoked');
});

test('a revoked treaty is revoked or replaced, by its reason, and no longer by the clock', async () => {
  const na = await shared();
  for (const [reason, state, replacement] of [
    ['ended', 'revoked', null],
    ['replaced_by:t-2', 'replaced', 't-2'],
    ['renewed_by:t-3', 'replaced', 't-3'],
    ['renewed_by:a:b renewed_by:c', 'replaced', 'a:b renewed_by:c'],
    ['replaced_by:', 'revoked', null],
    ['renewed_by:', 'revoked', null],
    ['Replaced_by:t-2', 'revoked', null],
    [' replaced_by:t-2', 'revoked', null],
    ['was replaced_by:t-2', 'revoked', null],
    ['replaced_by t-2', 'revoked', null],
    ['superseded_by:t-2', 'revoked', null],
    ['', 'revoked', null],
    ['unspecified', 'revoked', null],
  ] as const) {
    const treaty = await issued(recognize(na, { validity_hours: 1 }));
    const revoked_at = formatInstant(na.clock.now());
    await revokeTreaty(na, treaty.treaty_id, { reason });
    for (const later of [0, HOUR]) {
      na.clock.advance(later);
      const expected = {
        state,
        expiry_risk: 'none',
        seconds_until_expiry: null,
        expires_at: String(treaty.expires_at),
        revoked_at,
        revocation_reason: reason,
        replacement_treaty_id: replacement,
      };
      assert.deepEqual((await rowOf(na, treaty)).lifecycle, expected, reason);
    }
  }
});

function rowPath(id: JsonValue | undefined): string {
  return `/recognition-treaties/${encodeURIComponent(String(id))}`;
}

async function rowOf(na: TestAuthority, treaty: JsonObject): Promise<JsonObject> {
  return parsed(await get(na, rowPath(treaty.treaty_id)));
}

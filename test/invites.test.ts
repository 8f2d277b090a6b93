/** Invites: created, used, listed and withdrawn by operators [core-4-7], [core-4-18]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { misspelledKeys, valuesExcept, WEAK_KEYS, WRONG_HOURS } from './support/hostile.ts';
import {
  auditEvents,
  invite,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
} from './support/requests.ts';
import { storedBytes } from './support/test-stores.ts';

/** For tests that leave nothing behind that would affect the others. */
const shared = sharedAuthority();

test('an invite has the terms that it was given, or is for a client, 168 hours at most, within 24 hours', async () => {
  const na = await shared();
  const roles = ['role:service:mail', 'role:anchor'];
  for (const [terms, granted, validity, expiry] of [
    [{}, ['role:client'], 168, 24],
    [{ roles, max_validity_hours: 3, token_expiry_hours: 2 }, roles, 3, 2],
    // Unknown members are ignored.
    [{ max_uses: 10, nested: { count: 0 } }, ['role:client'], 168, 24],
  ] as const) {
    const { status, body } = await request(na, terms as JsonObject);
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body).sort(), ['expires_at', 'token_id']);
    assert.equal(body.expires_at, formatInstant(na.clock.now() + expiry * HOUR));
    const joined = await join(na, body.token_id, { validity_hours: 100_000 });
    assert.deepEqual(joined.body.roles, granted);
    assert.equal(joined.body.expires_at, formatInstant(na.clock.now() + validity * HOUR));
  }
});

const LONGEST = { max_validity_hours: 87_600, token_expiry_hours: 8760 } as const;

for (const [field, maximum] of Object.entries(LONGEST)) {
  test(`${field} accepts whole numbers from 1 to ${maximum}, also as text`, async () => {
    const na = await shared();
    for (const [value, hours] of [
      [1, 1],
      [maximum, maximum],
      [new JsonFloat(24), 24],
      [new JsonFloat(1e2), 100],
      ['48', 48],
      [String(maximum), maximum],
    ] as const) {
      const { body } = await request(na, { [field]: value });
      const isExpiry = field === 'token_expiry_hours';
      const expiresAt = isExpiry
        ? body.expires_at
        : (await join(na, body.token_id, { validity_hours: 10_000_000 })).body.expires_at;
      assert.equal(expiresAt, formatInstant(na.clock.now() + hours * HOUR), String(value));
    }
  });
}

const beyond = (maximum: number): [string, JsonValue][] => [
  [`${maximum + 1}`, maximum + 1],
  [`${maximum + 1}.0`, new JsonFloat(maximum + 1)],
  [`the digit string "${maximum + 1}"`, String(maximum + 1)],
  ['2 ** 53', 2n ** 53n],
  ['2 ** 200', 2n ** 200n],
  ['1e300', new JsonFloat(1e300)],
  ['a digit string of 50 digits', '9'.repeat(50)],
];

/** What a member refuses, by name of the value. */
const REFUSED: readonly (readonly [
  field: string,
  code: string,
  values: readonly (readonly [string, JsonValue])[],
])[] = [
  ...Object.entries(LONGEST).map(
    ([field, maximum]) =>
      [field, `invalid_${field}`, [...WRONG_HOURS, ...beyond(maximum)]] as const,
  ),
  [
    'count',
    'invalid_count',
    [
      ['0', 0],
      ['-1', -1],
      ['1001', 1001],
      ['2 ** 64', 2n ** 64n],
      ['1.0', new JsonFloat(1)],
      ['1e2', new JsonFloat(100)],
      ['the digit string "1"', '1'],
      ...valuesExcept('the integer 7', 'null'),
    ],
  ],
  [
    'roles',
    'invalid_role',
    [
      ['a list with an empty string', ['']],
      ['a list with null', [null]],
      ['a list with a number', ['role:client', 1]],
      ['a list with a list', [['role:client']]],
      ['a name with a blank', ['role:two words']],
      ['a name with a blank at its end', ['role:client ']],
      ['a name with a line break', ['role:client\n']],
      ['a name with a zero byte', ['role:\u0000']],
      ['a name with DEL', ['role:\u007f']],
      ['a name beyond ASCII', ['role:café']],
      ['a name of 129 characters', ['r'.repeat(129)]],
      ['one bad name among good ones', ['role:a', 'role:b', '']],
      ...valuesExcept('an empty list', 'a list', 'null'),
    ],
  ],
  [
    'recipient_public_key',
    'invalid_recipient_public_key',
    [...misspelledKeys(Buffer.alloc(32, 0xfb).toString('base64')), ...valuesExcept('null')],
  ],
];

for (const [field, code, values] of REFUSED) {
  test(`${field} refuses ${values.length} other values with 400 ${code}, and no invite is created`, async () => {
    const na = await shared();
    const before = auditEvents(na).length;
    for (const [name, value] of values) {
      assertRefused(await request(na, { [field]: value }), code, name);
    }
    assert.equal(auditEvents(na).length, before);
  });
}

test('count accepts integers from 1 to 1000 and gives that many secrets, each a separate invite', async () => {
  const na = await shared();
  for (const count of [1, 2, 1000]) {
    const { status, body } = await request(na, { count });
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body).sort(), ['expires_at', 'token_id', 'tokens']);
    const { tokens, ...first } = body;
    assert.deepEqual(tokens[0], first, 'the first is repeated at the top');
    const secrets = new Set(tokens.map(({ token_id }: { token_id: string }) => token_id));
    assert.equal(secrets.size, count);
    for (const token of tokens) {
      assert.deepEqual(Object.keys(token).sort(), ['expires_at', 'token_id']);
      assert.equal(token.expires_at, formatInstant(na.clock.now() + 24 * HOUR));
      assert.match(token.token_id, /^([0-9a-f]{32,}|[0-9a-f-]{36})$/);
    }
    for (const { token_id } of tokens.slice(0, 2)) {
      assert.equal(outcome(await join(na, token_id)), '200');
      assert.equal(outcome(await join(na, token_id)), '403 invalid_invite_token');
    }
  }
});

test('roles may be any list of printable names, and the certificate has them', async () => {
  const na = await shared();
  for (const roles of [
    [],
    ['role:client'],
    ['!'],
    ['r'.repeat(128)],
    ['!"#$%&\'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~'],
    ['role:anchor', 'role:unheard-of', 'plain'],
  ]) {
    const joined = await join(na, await invite(na, { roles }));
    assert.deepEqual(joined.body.roles, roles);
  }
});

test('with MESH_ROLE_PREFIXES a role must begin with one of them', async () => {
  const environment = { MESH_ROLE_PREFIXES: 'role:client, role:service:' };
  await using na = await startTestAuthority({ environment });
  for (const [roles, expected] of [
    [['role:client'], '200'],
    [['role:service:mail'], '200'],
    [['role:client', 'role:service:x'], '200'],
    [[], '200'],
    [['role:anchor'], '400 invalid_role'],
    [['role:service'], '400 invalid_role'],
    [['ROLE:CLIENT'], '400 invalid_role'],
    [['xrole:client'], '400 invalid_role'],
    [['role:client', 'role:anchor'], '400 invalid_role'],
  ] as const) {
    assert.equal(outcome(await request(na, { roles })), expected, roles.join());
  }
});

test('of several invalid fields the two integers are named first, then the roles', async () => {
  const na = await shared();
  for (const [terms, code] of [
    [{ max_validity_hours: 0, token_expiry_hours: 0, roles: 'x' }, 'invalid_max_validity_hours'],
    [{ roles: 'x', max_validity_hours: 0 }, 'invalid_max_validity_hours'],
    [{ count: 0, recipient_public_key: 'x', token_expiry_hours: 0 }, 'invalid_token_expiry_hours'],
    [{ roles: 'x', token_expiry_hours: 0 }, 'invalid_token_expiry_hours'],
    [{ roles: ['two words'], token_expiry_hours: 0 }, 'invalid_token_expiry_hours'],
    [{ count: 0, recipient_public_key: 'x', roles: 'x' }, 'invalid_role'],
  ] as const) {
    assertRefused(await request(na, terms), code, JSON.stringify(terms));
  }
});

test('all tokens of a count are bound to the one recipient, also after a restart', async () => {
  await using na = await startTestAuthority();
  const recipient = newKey();
  const terms = { recipient_public_key: recipient.publicKey, count: 2 };
  const { body } = await request(na, terms);
  await using again = await na.restart();
  for (const { token_id } of body.tokens) {
    for (let tries = 0; tries < 2; tries += 1) {
      assert.equal(outcome(await join(again, token_id)), '403 invalid_invite_token');
    }
    const own = await nodeRequest(again, '/join', recipient, { invite_token: token_id });
    assert.equal(outcome(own), '200');
  }
});

test('an invite bound to a weak key can be used by no one', async () => {
  const na = await shared();
  for (const key of WEAK_KEYS) {
    const token = await invite(na, { recipient_public_key: key });
    const weak = { ...newKey(), publicKey: key };
    const forged = await nodeRequest(na, '/join', weak, { invite_token: token });
    assert.equal(outcome(forged), '401 node_auth_failed');
  }
});

test('an invite is used up by one join', async () => {
  await using na = await startTestAuthority();
  const token = await invite(na);
  assert.equal(outcome(await join(na, token)), '200');
  assert.equal(outcome(await join(na, token)), '403 invalid_invite_token');
  await using again = await na.restart();
  assert.equal(outcome(await join(again, token)), '403 invalid_invite_token');
});

test('each token has its own audit entry, with a fingerprint in its place', async () => {
  const na = await shared();
  const before = auditEvents(na).length;
  const { body } = await request(na, { count: 2, roles: ['role:anchor'] });
  assert.deepEqual(
    auditEvents(na).slice(before),
    body.tokens.map(({ token_id }: { token_id: string }) => ({
      type: 'invite_created',
      details: {
        token_fingerprint: fingerprintOf(token_id),
        roles: ['role:anchor'],
        remote_addr: '127.0.0.1',
      },
    })),
  );
});

for (const format of ['text', 'json']) {
  test(`tokens never reach the ${format} log, whatever happens to them`, async () => {
    const environment = { MESH_LOG_FORMAT: format, MESH_LOG_LEVEL: 'DEBUG' };
    await using na = await startTestAuthority({ environment });
    const { body } = await request(na, { count: 3 });
    const [used, unproven, misplaced] = body.tokens.map(
      ({ token_id }: { token_id: string }) => token_id,
    );
    await join(na, used);
    await join(na, used);
    await nodeRequest(na, '/join', newKey(), { invite_token: unproven }, { signedBy: newKey() });
    for (const path of [
      `/join?invite_token=${misplaced}`,
      `/invite_token=${misplaced}`,
      `/admin/invite/token:${misplaced}`,
    ]) {
      await operate(na, path, {}, { method: 'GET' });
    }
    const log = na.logLines.join('');
    for (const token of [used, unproven, misplaced]) assert.equal(log.includes(token), false);
  });
}

test('only hashes of tokens are on disk, before and after use', async () => {
  await using na = await startTestAuthority();
  const { body } = await request(na, { count: 2 });
  const [used, unused] = body.tokens.map(({ token_id }: { token_id: string }) => token_id);
  await join(na, used);
  await na.stop();
  const stored = await storedBytes(na);
  for (const token of [used, unused]) {
    assert.equal(stored.includes(token), false, 'the token');
    assert.equal(stored.includes(Buffer.from(token, 'hex')), false, 'its bytes');
    assert.equal(stored.includes(sha256Hex(token)), true, 'its hash');
  }
});

// Listed and withdrawn [core-4-18]

test('invites are listed by fingerprint with their current state, also after a restart', async () => {
  await using na = await startTestAuthority();
  const expired = await invite(na, { token_expiry_hours: 1 });
  na.clock.advance(2 * HOUR);
  const consumed = await invite(na);
  const key = newKey();
  await nodeRequest(na, '/join', key, { invite_token: consumed });
  const recipient = newKey().publicKey;
  const unused = await invite(na, { roles: ['role:anchor'], recipient_public_key: recipient });
  const createdAt = na.clock.now();
  const withdrawn = await invite(na);
  na.clock.advance(MINUTE);
  await withdraw(na, fingerprintOf(withdrawn));
  const expected = Object.entries({ expired, consumed, unused, withdrawn })
    .map(([status, token]) => [fingerprintOf(token), status])
    .sort();
  await using again = await na.restart();
  assert.deepEqual(await statuses(again), expected);
  for (const [fingerprint, status] of expected) {
    assert.deepEqual(await statuses(again, `?status=${status}`), [[fingerprint, status]]);
  }
  const { text, body } = await list(again);
  for (const token of [expired, consumed, unused, withdrawn]) {
    assert.equal(text.includes(token), false);
  }
  const rowOf = (token: string) =>
    body.invites.find((row: Row) => row.token_fingerprint === fingerprintOf(token));
  assert.deepEqual(rowOf(unused), {
    token_fingerprint: fingerprintOf(unused),
    status: 'unused',
    batch: null,
    roles: ['role:anchor'],
    max_validity_hours: 168,
    recipient_public_key: recipient,
    created_at: formatInstant(createdAt),
    expires_at: formatInstant(createdAt + 24 * HOUR),
    used_at: null,
    used_by: null,
    withdrawn_at: null,
    withdrawn_by: null,
  });
  assert.equal(rowOf(consumed).used_by, key.publicKey);
  assert.equal(rowOf(withdrawn).withdrawn_by, 'ops-standard');
  assert.equal(rowOf(withdrawn).withdrawn_at, formatInstant(createdAt + MINUTE));
});

test('pages contain each invite once, even if invites are created, used and withdrawn in between', async () => {
  await using na = await startTestAuthority();
  const tokens: string[] = [];
  for (let i = 0; i < 20; i += 1) tokens.push(await invite(na));
  const listed: string[] = [];
  for (let cursor: string | undefined = '', turn = 0; cursor !== undefined; turn += 1) {
    const from: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { body } = await list(na, `?limit=3${from}`);
    listed.push(...body.invites.map((row: Row) => row.token_fingerprint));
    cursor = body.next_cursor;
    await invite(na);
    await join(na, tokens[2 * turn] as string);
    await withdraw(na, fingerprintOf(tokens[2 * turn + 1] as string));
  }
  assert.deepEqual(listed, [...new Set(listed)].sort(), 'in order, and none twice');
  for (const token of tokens) assert.ok(listed.includes(fingerprintOf(token)));
});

test('a withdrawn invite admits no one, and a second withdrawal changes nothing', async () => {
  await using na = await startTestAuthority();
  const token = await invite(na);
  const fingerprint = fingerprintOf(token);
  const answer = { token_fingerprint: fingerprint, status: 'withdrawn' };
  const first = await withdraw(na, fingerprint);
  assert.deepEqual(first.body, { ...answer, already_withdrawn: false });
  assert.equal(outcome(await join(na, token)), '403 invalid_invite_token');
  const second = await withdraw(na, fingerprint);
  assert.deepEqual(second.body, { ...answer, already_withdrawn: true });
  const audited = auditEvents(na).filter(({ type }) => type === 'invite_withdrawn');
  assert.deepEqual(
    audited.map(({ details }) => details),
    [{ token_fingerprint: fingerprint, remote_addr: '127.0.0.1' }],
  );
  await using again = await na.restart();
  assert.equal(outcome(await join(again, token)), '403 invalid_invite_token');
});

test('a used or unknown invite cannot be withdrawn', async () => {
  const na = await shared();
  const token = await invite(na);
  await join(na, token);
  assert.equal(outcome(await withdraw(na, fingerprintOf(token))), '409 invite_consumed');
  const unused = await invite(na);
  for (const unknown of [
    'nobody',
    sha256Hex(unused),
    fingerprintOf(unused).slice(0, 15),
    'f'.repeat(16),
  ]) {
    assert.equal(outcome(await withdraw(na, unknown)), '404 invite_not_found');
  }
  assert.equal(outcome(await join(na, unused)), '200');
  assert.equal(outcome(await list(na, '?status=revoked')), '400 invalid_status');
});

function request(na: TestAuthority, terms: JsonObject): Promise<Received> {
  return operate(na, '/admin/invite', terms, { operator: na.standard });
}

/** A new node joins with the token. */
function join(na: TestAuthority, token: string, more: JsonObject = {}): Promise<Received> {
  return nodeRequest(na, '/join', newKey(), { invite_token: token, ...more });
}

function assertRefused(answer: Received, code: string, name: string): void {
  assert.equal(outcome(answer), `400 ${code}`, name);
  assert.deepEqual(answer.body.error.details, {}, name);
}

interface Row {
  readonly token_fingerprint: string;
  readonly status: string;
}

function list(na: TestAuthority, query = ''): Promise<Received> {
  return operate(na, `/admin/invites${query}`, {}, { method: 'GET', operator: na.standard });
}

function withdraw(na: TestAuthority, fingerprint: string): Promise<Received> {
  const call = { operator: na.standard };
  return operate(na, `/admin/invites/${fingerprint}/withdraw`, {}, call);
}

function fingerprintOf(token: string): string {
  return sha256Hex(token).slice(0, 16);
}

async function statuses(na: TestAuthority, query = '') {
  const { invites, count } = (await list(na, query)).body;
  assert.equal(count, invites.length);
  return invites.map((row: Row) => [row.token_fingerprint, row.status]);
}

test('50 concurrent joins with one invite give exactly one certificate', async () => {
  await using na = await startTestAuthority();
  const token = await invite(na);
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => nodeRequest(na, '/join', newKey(), { invite_token: token })),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  const refused = answers.filter(({ status }) => status !== 200);
  assert.deepEqual(
    new Set(refused.map(({ body }) => body.error.code)),
    new Set(['invalid_invite_token']),
  );
});

/**
 * Attestation, treaty, feed and descriptor as they are received [core-1-3], [core-1-4], [core-5-6] to
 * [core-5-10].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { verifyTreaty } from '../src/protocol/api/verifications.ts';
import { readAgentDescriptor } from '../src/protocol/records/agent-descriptor.ts';
import { readPolicyManifest } from '../src/protocol/records/policy-manifest.ts';
import {
  readMembershipAttestation,
  readRecognitionPolicy,
  readRecognitionTreaty,
  verifyAttestation,
} from '../src/protocol/records/recognition.ts';
import { readRevocationFeed } from '../src/protocol/records/revocation-feed.ts';
import {
  isSignedByAny,
  type SignedRecord,
  signedText,
} from '../src/protocol/records/signed-record.ts';
import { sharedAuthority } from './support/authority.ts';
import { valuesExcept } from './support/hostile.ts';
import { newKey } from './support/requests.ts';
import { importFeed, signedBy, sovereign } from './support/trust.ts';
import { without } from './support/trust-protocol.ts';
import { readVectors } from './support/vectors.ts';
import { resultOf, verdictOf, verifier } from './support/verifications.ts';

const shared = sharedAuthority();

const READERS: Readonly<Record<string, (received: unknown) => SignedRecord | null>> = {
  MembershipAttestation: readMembershipAttestation,
  RecognitionTreaty: readRecognitionTreaty,
  SovereignRevocationFeed: readRevocationFeed,
  AgentDescriptor: readAgentDescriptor,
};

const own = readVectors<JsonObject>('own_wire_core.json');

function read(name: string, received: JsonValue): SignedRecord | null {
  const reader = READERS[name];
  assert.ok(reader !== undefined, name);
  return reader(received);
}

// Vectors

for (const { id, description, input, expected } of readVectors<JsonObject[]>('treaties.json')) {
  test(`${id}: ${description}`, async () => {
    const { treaty } = input as JsonObject;
    const record = readRecognitionTreaty(treaty);
    assert.equal(canonicalJson(record), canonicalJson(treaty ?? null), 'already normalized');
    const now = Date.parse(String(record?.issued_at));
    const verdict = await verdictOf(verifyTreaty, input as JsonObject, verifier({ now }));
    const { accepted, treaty_id } = expected as JsonObject;
    assert.deepEqual([verdict.accepted, verdict.treaty_id], [accepted, treaty_id]);
  });
}

for (const { id, description, input, expected } of readVectors<JsonObject[]>('revocation.json')) {
  const { feed, issuer_public_keys } = input as JsonObject;
  const { accepted, revoked_count } = expected as JsonObject;

  test(`${id}: ${description}`, async () => {
    const record = readRevocationFeed(feed);
    assert.ok(record !== null);
    assert.equal(isSignedByAny(record, issuer_public_keys as string[], verifySignature), accepted);
    assert.equal(record.revoked_attestation_ids.length, revoked_count);
    const na = await shared();
    const rest = { issuer_public_keys: issuer_public_keys ?? null };
    const answer = await importFeed(na, feed as JsonObject, rest);
    assert.deepEqual([answer.body.accepted, answer.body.revoked_count], [accepted, revoked_count]);
  });
}

for (const { id, description, input, expected } of readVectors<JsonObject[]>('signatures.json')) {
  const { canonical_json, public_key_b64, signature_b64 } = input as JsonObject;
  const given = signature_b64 ?? (expected as JsonObject).signature_b64;

  test(`${id}: ${description}`, () => {
    const record = readRecognitionTreaty({
      ...(parseJson(String(canonical_json)) as JsonObject),
      signatures: [{ key_id: 'any', sig: given }],
    });
    assert.ok(record !== null);
    assert.equal(signedText(record), canonical_json);
    assert.equal(
      isSignedByAny(record, [String(public_key_b64)], verifySignature),
      (expected as JsonObject).valid,
    );
  });
}

// Layouts [core-5-6] to [core-5-10]: required members, and defaults

const key = newKey();
const [alpha, beta] = [sovereign('alpha', key), sovereign('beta')];
const AT = Date.UTC(2026, 0, 1);

const FULL: Readonly<Record<string, JsonObject>> = {
  MembershipAttestation: alpha.attestation(AT),
  RecognitionTreaty: alpha.treaty(AT, beta),
  SovereignRevocationFeed: alpha.feed(AT, 1, { revoked_attestation_ids: ['a'] }),
  AgentDescriptor: signedBy(
    {
      agent_id: 'agent-1',
      node_public_key: key.publicKey,
      network_name: 'alpha',
      capabilities: ['llm:chat'],
      endpoint: { host: 'h', port: 1, scheme: 'wss' },
      registered_at: '2026-01-01T00:00:00Z',
      expires_at: '2026-01-01T01:00:00Z',
      metadata: { a: 1 },
    },
    key,
  ),
};

const DEFAULTS: Readonly<Record<string, JsonObject>> = {
  MembershipAttestation: {
    subject_public_key: null,
    roles: [],
    status: 'active',
    claims: {},
    signatures: [],
  },
  RecognitionTreaty: {
    scope: { allowed_roles: [], accepted_statuses: ['active'], claims: {} },
    status: 'active',
    metadata: {},
    signatures: [],
  },
  SovereignRevocationFeed: {
    revoked_attestation_ids: [],
    revocation_reasons: {},
    signatures: [],
  },
  AgentDescriptor: { capabilities: [], metadata: {}, signatures: [] },
};

for (const [name, full] of Object.entries(FULL)) {
  const defaults = DEFAULTS[name] ?? {};

  test(`${name}: omitted members get their defaults, which the signed text contains; others are required`, () => {
    for (const member of Object.keys(full)) {
      const record = read(name, without(full, member));
      assert.equal(record === null, !(member in defaults), member);
      if (record === null) continue;
      assert.deepEqual(record[member], defaults[member], member);
      assert.ok(canonicalJson(record).includes(`"${member}":`), member);
    }
  });

  test(`${name}: a value of another type is refused`, () => {
    for (const [member, value] of Object.entries(full)) {
      for (const [kind, other] of valuesInsteadOf(member, value)) {
        assert.equal(read(name, { ...full, [member]: other }), null, `${kind} as ${member}`);
      }
    }
    for (const [kind, value] of [
      ...valuesExcept('an object'),
      ['1.0', new JsonFloat(1)] as const,
    ]) {
      assert.equal(read(name, value), null, `${kind} as record`);
    }
  });

  test(`${name}: members of every object's prototype are not members of a record`, () => {
    const member = Object.keys(full)[0] ?? '';
    const heir = Object.assign(Object.create({ [member]: full[member] }), without(full, member));
    assert.equal(read(name, heir), null);
  });

  test(`${name}: a signature that covers an unknown member fails`, () => {
    const record = read(name, signedBy({ ...full, extra: 1 }, key));
    assert.ok(record !== null && !isSignedByAny(record, [key.publicKey], verifySignature));
  });
}

/** Null only fits the optional key. */
function valuesInsteadOf(member: string, value: JsonValue): (readonly [string, JsonValue])[] {
  const nothing = member === 'subject_public_key' ? [] : [['null', null] as const];
  if (typeof value === 'string') {
    return [...nothing, ...valuesExcept('a string', 'an empty string', 'null')];
  }
  if (member === 'claims' || member === 'metadata') {
    return [...valuesExcept('an object', 'an empty object'), ['1.0', new JsonFloat(1)]];
  }
  if (member !== 'signatures') return nothing;
  return [
    ...valuesExcept('a list', 'an empty list'),
    ['a list of text', ['x']],
    ['a list of lists', [[]]],
    ['a float in the list', [new JsonFloat(1)]],
    ['without sig', [{ key_id: 'k' }]],
    ['without key_id', [{ sig: 's' }]],
    ['null as sig', [{ key_id: 'k', sig: null }]],
    ['a number as key_id', [{ key_id: 7, sig: 's' }]],
  ];
}

/** Windows by when they are issued, begin and end. */
const WINDOWS: readonly (readonly [fits: boolean, name: string, ...string[]])[] = [
  [true, 'ends after it begins', '01T00:00:00Z', '01T00:00:00Z', '01T00:00:00.000001Z'],
  [false, 'ends when it begins', '01T00:00:00Z', '01T00:00:00Z', '01T00:00:00Z'],
  [false, 'ends then, in another zone', '01T00:00:00Z', '02T02:00:00+02:00', '02T00:00:00Z'],
  [false, 'ends before it begins', '01T00:00:00Z', '02T00:00:00Z', '01T00:00:00Z'],
  [
    false,
    'ends before it begins, but not as text',
    '01T00:00:00Z',
    '02T00:00:00Z',
    '02T01:00:00+02:00',
  ],
  [true, 'is issued at its end', '02T00:00:00Z', '01T00:00:00Z', '02T00:00:00Z'],
  [false, 'is issued after its end', '02T00:00:00.000001Z', '01T00:00:00Z', '02T00:00:00Z'],
  [true, 'is issued before it begins', '01T00:00:00Z', '03T00:00:00Z', '04T00:00:00Z'],
  [true, 'is issued after it begins', '01T12:00:00Z', '01T00:00:00Z', '02T00:00:00Z'],
];

for (const name of ['MembershipAttestation', 'RecognitionTreaty']) {
  test(`${name}: the status is one of three, and matches exactly`, () => {
    for (const status of ['active', 'suspended', 'revoked']) {
      assert.equal(read(name, { ...FULL[name], status })?.status, status);
    }
    for (const status of ['', 'Active', 'ACTIVE', ' active', 'expired', 'constructor']) {
      assert.equal(read(name, { ...FULL[name], status }), null, status);
    }
  });

  test(`${name}: a window ends after it begins, and nothing is issued after its end`, () => {
    for (const [fits, how, ...instants] of WINDOWS) {
      const [issued_at = '', valid_from = '', expires_at = ''] = instants.map(
        (at) => `2026-01-${at}`,
      );
      const record = read(name, { ...FULL[name], issued_at, valid_from, expires_at });
      assert.equal(record !== null, fits, how);
    }
  });
}

test('RecognitionTreaty: at least one subject key, of any text', () => {
  const full = FULL.RecognitionTreaty ?? {};
  assert.equal(readRecognitionTreaty({ ...full, subject_public_keys: [] }), null);
  for (const keys of [[''], ['not a key'], [key.publicKey, key.publicKey]]) {
    const record = readRecognitionTreaty({ ...full, subject_public_keys: keys });
    assert.deepEqual(record?.subject_public_keys, keys);
  }
});

test('RecognitionTreaty: the members of a scope have their own defaults', () => {
  const full = FULL.RecognitionTreaty ?? {};
  for (const [scope, expected] of [
    [{}, {}],
    [{ allowed_roles: ['a', 'a'] }, { allowed_roles: ['a', 'a'] }],
    [{ accepted_statuses: [] }, { accepted_statuses: [] }],
    [{ claims: { a: new JsonFloat(1) } }, { claims: { a: new JsonFloat(1) } }],
  ] as [JsonObject, JsonObject][]) {
    const record = readRecognitionTreaty({ ...full, scope });
    assert.deepEqual(record?.scope, {
      allowed_roles: [],
      accepted_statuses: ['active'],
      claims: {},
      ...expected,
    });
  }
});

test('SovereignRevocationFeed: ids are unique and ordered by code point', () => {
  const full = FULL.SovereignRevocationFeed ?? {};
  const ids = ['b', 'a', '\u{1f600}', '\ue000', 'B', '', 'a', '10', '9', 'aa'];
  const record = readRevocationFeed({ ...full, revoked_attestation_ids: ids });
  assert.deepEqual(record?.revoked_attestation_ids, [
    '',
    '10',
    '9',
    'B',
    'a',
    'aa',
    'b',
    '\ue000',
    '\u{1f600}',
  ]);
});

test('SovereignRevocationFeed: reasons are only for ids of the feed', () => {
  const full = FULL.SovereignRevocationFeed ?? {};
  for (const [reasons, valid] of [
    ['{}', true],
    ['{"a":""}', true],
    ['{"a":"x","b":"y"}', true],
    ['{"c":"x"}', false],
    ['{"a":"x","c":"y"}', false],
    ['{"__proto__":"x"}', false],
    ['{"constructor":"x"}', false],
    ['{"a":null}', false],
    ['{"a":7}', false],
    ['{"a":["x"]}', false],
  ] as const) {
    const record = readRevocationFeed({
      ...full,
      revoked_attestation_ids: ['b', 'a'],
      revocation_reasons: parseJson(reasons),
    });
    assert.equal(record !== null, valid, reasons);
  }
});

// Integers [core-1-4], [core-g2]

const INTEGERS: readonly (readonly [string, (value: JsonValue) => JsonValue | undefined])[] = [
  [
    'the sequence of a feed',
    (sequence) => readRevocationFeed({ ...FULL.SovereignRevocationFeed, sequence })?.sequence,
  ],
  [
    'the port of an endpoint',
    (port) =>
      readAgentDescriptor({ ...FULL.AgentDescriptor, endpoint: { host: 'h', port } })?.endpoint
        .port,
  ],
  [
    'a port of a policy',
    (port) => readPolicyManifest(manifest({ allowed_ports: [port] }))?.allowed_ports[0],
  ],
  [
    'the hops of a policy',
    (max_hops) => readPolicyManifest(manifest({ routing: { max_hops } }))?.routing.max_hops,
  ],
];

function manifest(changes: JsonObject): JsonObject {
  return {
    policy_id: 'p',
    issued_at: '2026-01-01T00:00:00Z',
    issued_by: 'na',
    min_client_version: '0.1.0',
    ...changes,
  };
}

for (const [name, readInteger] of INTEGERS) {
  test(`${name} accepts an integer, or an integral float, as that integer`, () => {
    for (const [token, expected] of [
      ['7', 7],
      ['7.0', 7],
      ['7e0', 7],
      ['1e2', 100],
      ['1E+2', 100],
      ['65535.000', 65_535],
    ] as const) {
      assert.equal(readInteger(parseJson(token)), expected, token);
    }
  });

  test(`${name} refuses anything but an integer, including text and booleans`, () => {
    for (const [kind, value] of [
      ...valuesExcept('the integer 7'),
      ['"7"', '7'] as const,
      ['" 7 "', ' 7 '] as const,
      ['"7.0"', '7.0'] as const,
      ['"1_000"', '1_000'] as const,
      ['7.000001', new JsonFloat(7.000001)] as const,
    ]) {
      assert.equal(readInteger(value), undefined, kind);
    }
  });
}

test('the sequence of a feed may have any size, and is never negative', () => {
  for (const [token, canonical] of [
    ['0', '0'],
    ['-0', '0'],
    ['0.0', '0'],
    ['-0.0', '0'],
    ['9007199254740993', '9007199254740993'],
    [`1${'0'.repeat(300)}`, `1${'0'.repeat(300)}`],
  ] as const) {
    assert.equal(signedSequence(token), canonical, token);
  }
  for (const token of ['-1', '-1.0', `-1${'0'.repeat(300)}`, '0.5', '1e-7']) {
    const feed = { ...FULL.SovereignRevocationFeed, sequence: parseJson(token) };
    assert.equal(readRevocationFeed(feed), null, token);
  }
});

test('an integral float is an integer even where a number can no longer represent all integers', () => {
  for (const [token, canonical] of [
    ['9007199254740992.0', '9007199254740992'],
    ['1e16', '10000000000000000'],
  ] as const) {
    assert.equal(signedSequence(token), canonical, token);
  }
});

/** The sequence as it appears in the signed text; null if the feed is refused. */
function signedSequence(token: string): string | null {
  const record = readRevocationFeed({
    ...FULL.SovereignRevocationFeed,
    sequence: parseJson(token),
  });
  return record === null ? null : (/"sequence":([^,}]+)/.exec(signedText(record))?.[1] ?? '');
}

// Datetimes [core-1-3]

/** Records, each with a datetime that no other rule restricts. */
const DATETIMES = [
  ['SovereignRevocationFeed', 'issued_at'],
  ['MembershipAttestation', 'issued_at'],
  ['RecognitionTreaty', 'issued_at'],
] as const;
const datetimeVectors = own.record_datetimes as { input: string; canonical: string | null }[];

test('the vectors contain datetimes of every kind', () => assert.ok(datetimeVectors.length >= 29));

const OTHER_DATETIMES = [
  { input: '2026-01-01T00:00:00+23:59', canonical: '2026-01-01T00:00:00+23:59' },
  { input: '2026-01-01T00:00:00-23:59', canonical: '2026-01-01T00:00:00-23:59' },
  { input: '2026-01-01T00:00:00\u221202:00', canonical: '2026-01-01T00:00:00-02:00' },
  { input: '0001-01-01T00:00:00Z', canonical: '0001-01-01T00:00:00Z' },
  { input: '2024-02-29T23:59:59.999999Z', canonical: '2024-02-29T23:59:59.999999Z' },
  { input: '2026-01-01T00:00:00.0000001Z', canonical: '2026-01-01T00:00:00Z' },
  ...[
    ...['2025-02-29T00:00:00Z', '2026-01-01T12:00:00+12:60', '2026-01-01T00:00:00+02:00:30'],
    ...['2026-W01-1T00:00:00Z', '0000-01-01T00:00:00Z', '10000-01-01T00:00:00Z', '1767225600', ''],
  ].map((input) => ({ input, canonical: null })),
];

for (const [name, member] of DATETIMES) {
  test(`${name}: a datetime gets its canonical spelling, or is refused`, () => {
    const full = FULL[name] ?? {};
    const ends = 'expires_at' in full ? { expires_at: '9999-12-31T23:59:59.999999Z' } : {};
    for (const { input, canonical } of [...datetimeVectors, ...OTHER_DATETIMES]) {
      const naive = canonical !== null && !/(Z|[+-]\d\d:\d\d)$/.test(canonical);
      const record = read(name, { ...full, ...ends, [member]: input });
      assert.equal(record?.[member] ?? null, naive ? null : canonical, input);
    }
  });

  test(`${name}: a datetime is never a number, a boolean or an object`, () => {
    for (const value of [1_767_225_600, 2n ** 70n, new JsonFloat(1.5), true, null, [], {}]) {
      assert.equal(read(name, { ...FULL[name], [member]: value }), null);
    }
  });

  test(`${name}: a signature over the canonical spelling is valid for every other spelling, and no other signature is`, () => {
    const full = FULL[name] ?? {};
    const spelled = (text: string) => read(name, { ...full, [member]: text });
    for (const spelling of [
      '2026-01-01T00:00:00+00:00',
      '2026-01-01 00:00z',
      '2026-01-01t00:00:00.000Z',
    ]) {
      const record = spelled(spelling);
      assert.ok(
        record !== null && isSignedByAny(record, [key.publicKey], verifySignature),
        spelling,
      );
    }
    const shifted = spelled('2026-01-01T02:00:00+02:00');
    assert.ok(
      shifted !== null && !isSignedByAny(shifted, [key.publicKey], verifySignature),
      'an offset is kept',
    );
    const { signatures: _, ...rest } = full as Record<string, JsonValue>;
    const odd = signedBy({ ...rest, [member]: '2026-01-01T00:00:00+00:00' }, key);
    const record = read(name, odd);
    assert.ok(
      record !== null && !isSignedByAny(record, [key.publicKey], verifySignature),
      'signed over odd text',
    );
  });
}

// Recognition policy [core-5-8]

test('RecognitionPolicy: defaults are filled, unknown members dropped, revoked ids a set', () => {
  const policy = readRecognitionPolicy({
    local_sovereign_id: 'alpha',
    recognized_issuers: [{ sovereign_id: 'beta', public_keys: ['k'], extra: 1 }],
    revoked_attestation_ids: ['b', 'a', 'b', '\u{1f600}', '\ue000'],
    extra: 1,
  });
  assert.deepEqual(policy, {
    local_sovereign_id: 'alpha',
    recognized_issuers: [
      {
        sovereign_id: 'beta',
        public_keys: ['k'],
        allowed_roles: [],
        accepted_statuses: ['active'],
      },
    ],
    revoked_attestation_ids: ['a', 'b', '\ue000', '\u{1f600}'],
  });
  assert.deepEqual(readRecognitionPolicy({ local_sovereign_id: '' }), {
    local_sovereign_id: '',
    recognized_issuers: [],
    revoked_attestation_ids: [],
  });
});

test('a policy entry named like a member of every object recognizes only that name', () => {
  const attestation = readMembershipAttestation(FULL.MembershipAttestation);
  assert.ok(attestation !== null);
  for (const sovereign_id of ['__proto__', 'constructor', 'ALPHA', 'alpha ']) {
    const policy = readRecognitionPolicy({
      local_sovereign_id: 'x',
      recognized_issuers: [{ sovereign_id, public_keys: [key.publicKey] }],
    });
    assert.ok(policy !== null);
    assert.equal(verifyAttestation(attestation, policy, AT, verifySignature), 'unknown_issuer');
  }
});

test('records of the network that were never normalized are still verified', async () => {
  for (const { record, received, public_key_b64 } of own.records as readonly JsonObject[]) {
    if (record !== 'RecognitionTreaty') continue;
    const treaty = received as JsonObject;
    const body = { treaty, issuer_public_keys: [String(public_key_b64)] };
    // Not of the name in the records: treaties in its own name are held against its own keys.
    const by = verifier({ now: Date.parse(String(treaty.valid_from)), ownName: 'verifier' });
    assert.equal(await resultOf(verifyTreaty, body, by), 'accepted');
  }
});

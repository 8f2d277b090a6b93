/**
 * Agreements over HTTP: offer, counter, accept, verify [trust-2-3] to [trust-2-5], [trust-4-2],
 * [trust-4-3], [trust-5-1] to [trust-5-3], [trust-6-1].
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { FORGED_SIGNATURE, valuesExcept, WEAK_KEYS, WRONG_TIMESTAMPS } from './support/hostile.ts';
import {
  auditEvents,
  get,
  newKey,
  operate,
  operatorRequest,
  outcome,
  send,
  sendSigned,
} from './support/requests.ts';
import { stateDigest } from './support/test-stores.ts';
import {
  audited,
  misspellableKey,
  parsed,
  post,
  revokeTreaty,
  sovereign,
  startUnlimited,
  UUID,
  verifies,
} from './support/trust.ts';
import {
  AT_THE_OPERATORS_DOOR,
  AT_THE_PUBLIC_DOOR,
  agreedTerms,
  agreementBetween,
  agreementSigners,
  type Change,
  combinationsOf,
  counterTo,
  created,
  drop,
  eachOf,
  evidence,
  inner,
  keyListCases,
  MISSING,
  mutationsOf,
  offerBetween,
  ourselves,
  outcomeWithCause,
  type Party,
  recognized,
  resigned,
  set,
  signaturesOf,
  signedAgreement,
  without,
} from './support/trust-protocol.ts';

const OFFER = '/admin/agreements/offer';
const COUNTER = '/admin/agreements/counter';
const ACCEPT = '/admin/agreements/accept';
const VERIFY = '/agreements/verify';

/** Two sovereigns that recognize each other, as seen by one authority. */
async function parties(na: TestAuthority): Promise<{ alpha: Party; beta: Party; now: number }> {
  const [alpha, beta] = [ourselves(na), sovereign('beta')];
  await recognized(na, beta);
  return { alpha, beta, now: na.clock.now() };
}

function termsRequest(now: number, changes: JsonObject = {}): JsonObject {
  return {
    capabilities: ['read', 'write'],
    scope: { region: 'eu-west' },
    valid_from: formatInstant(now),
    valid_until: formatInstant(now + HOUR),
    ...changes,
  };
}

function offerRequest(now: number, changes: JsonObject = {}): JsonObject {
  const expires_at = formatInstant(now + 60 * SECOND);
  return { responder_sovereign_id: 'beta', ...termsRequest(now), expires_at, ...changes };
}

async function graphDigest(na: TestAuthority): Promise<string> {
  const { text } = await get(na, '/recognition-graph');
  return createHash('sha256').update(text).digest('hex');
}

/** Checks evidence of the authority member by member, and removes it from its record. */
function assertOwnEvidence(
  na: TestAuthority,
  record: JsonObject,
  expected: JsonObject & { readonly signal: string; readonly severity: string },
): void {
  const { signal, severity, ...members } = expected;
  const { evidence_id, signals, signatures, ...rest } = record;
  assert.match(String(evidence_id), UUID);
  const now = formatInstant(na.clock.now());
  assert.deepEqual(rest, {
    issuer_sovereign_id: 'alpha',
    requested_roles: [],
    evaluated_at: now,
    issued_at: now,
    issued_by: na.audience,
    metadata: {},
    ...members,
  });
  const [only, ...more] = signals as JsonObject[];
  assert.deepEqual([only?.code, only?.severity, more], [signal, severity, []]);
  assert.equal(typeof only?.detail, 'string');
  assert.deepEqual(
    (signatures as JsonObject[]).map(({ key_id }) => key_id),
    [na.audience],
  );
  assert.ok(verifies(record, na.audience));
}

// Offers

test('an offer is a signed record, and it is audited', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const offer = await created(
    operate(na, OFFER, offerRequest(now, { capabilities: ['b', 'a', 'b'] }), {
      operator: na.standard,
    }),
  );
  const { offer_id, offerer_evidence, signatures, ...rest } = offer;
  assert.match(String(offer_id), UUID);
  assert.deepEqual(rest, {
    offerer_sovereign_id: 'alpha',
    responder_sovereign_id: 'beta',
    requested_terms: {
      capabilities: ['b', 'a', 'b'],
      scope: { region: 'eu-west' },
      valid_from: formatInstant(now),
      valid_until: formatInstant(now + HOUR),
      freshness_commitment: 0,
    },
    graph_digest: await graphDigest(na),
    expires_at: formatInstant(now + 60 * SECOND),
    created_at: formatInstant(now),
  });
  assertOwnEvidence(na, offerer_evidence as JsonObject, {
    source_sovereign_id: 'alpha',
    target_sovereign_id: 'beta',
    verdict: 'allow',
    reason: 'active_treaty_path',
    trusted: true,
    hop_count: 1,
    graph_digest: await graphDigest(na),
    signal: 'active_treaty_path',
    severity: 'info',
  });
  assert.deepEqual(
    signaturesOf(offer).map(({ key_id }) => key_id),
    [na.audience],
  );
  assert.ok(verifies(offer, na.audience));
  assert.deepEqual(audited(na, 'capability_offer_built'), [
    {
      offer_id,
      offerer_sovereign_id: 'alpha',
      responder_sovereign_id: 'beta',
      capabilities: ['b', 'a', 'b'],
    },
  ]);
  const other = await created(operate(na, OFFER, offerRequest(now)));
  assert.notEqual(other.offer_id, offer_id);
});

test('a stranger, and oneself, can be offered to: the evidence inside blocks', async (t) => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  for (const responder of ['stranger', 'alpha', 'Beta', ' beta']) {
    await t.test(responder, async () => {
      const request = offerRequest(now, { responder_sovereign_id: responder });
      const offer = await created(operate(na, OFFER, request));
      assertOwnEvidence(na, inner(offer, 'offerer_evidence'), {
        source_sovereign_id: 'alpha',
        target_sovereign_id: responder,
        verdict: 'block',
        reason: 'no_active_treaty_path',
        trusted: false,
        hop_count: 0,
        graph_digest: await graphDigest(na),
        signal: 'no_active_treaty_path',
        severity: 'block',
      });
      const countered = await operate(na, COUNTER, termsRequest(now, { offer }));
      assert.equal(outcomeWithCause(countered), '422 counter_rejected offerer_evidence_blocks');
      const accepted = await operate(na, ACCEPT, { offer });
      assert.equal(outcomeWithCause(accepted), '422 accept_rejected offerer_evidence_blocks');
    });
  }
});

test('the configured label of the authority key is in every signature and in evidence', async () => {
  await using na = await startUnlimited({ environment: { NA_KEY_ID: 'na-2026' } });
  const { now } = await parties(na);
  const offer = await created(operate(na, OFFER, offerRequest(now)));
  const counter = await created(operate(na, COUNTER, termsRequest(now, { offer })));
  const agreement = await created(operate(na, ACCEPT, { counter, original_offer: offer }));
  const records = [offer, counter, agreement, inner(offer, 'offerer_evidence')];
  for (const record of [...records, inner(counter, 'responder_evidence')]) {
    for (const { key_id } of signaturesOf(record)) assert.equal(key_id, 'na-2026');
  }
  assert.equal(inner(offer, 'offerer_evidence').issued_by, 'na-2026');
  assert.equal(inner(counter, 'responder_evidence').issued_by, 'na-2026');
});

test('scope is kept whole: numbers by token, text beyond ASCII, names of any kind', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const scope: JsonObject = {
    float: new JsonFloat(1),
    integer: 1,
    large: 2n ** 70n,
    exponent: new JsonFloat(1e-7),
    when: '2026-01-01T02:00:00+02:00',
    'Zürich \u{1f680}': ['\u007f', '\u2028', '<', ''],
    constructor: null,
    toString: false,
    nested: { deep: [[{}], []] },
  };
  // The parser has to keep this name too; in a literal it would set the prototype.
  Object.defineProperty(scope, '__proto__', { value: 'own', enumerable: true });
  const offer = await created(operate(na, OFFER, offerRequest(now, { scope })));
  const agreement = await created(operate(na, ACCEPT, { offer }));
  const kept = (record: JsonObject, terms: string) =>
    canonicalJson(inner(inner(record, terms), 'scope'));
  assert.equal(kept(offer, 'requested_terms'), canonicalJson(scope));
  assert.equal(kept(agreement, 'agreed_terms'), canonicalJson(scope));
  assert.match(kept(agreement, 'agreed_terms'), /"__proto__":"own"/);
  assert.ok(verifies(offer, na.audience));
  const answer = await post(na, VERIFY, { agreement });
  assert.equal(answer.body.reason, 'accepted');
  const respelt = { ...scope, float: 1 };
  const altered = {
    ...agreement,
    agreed_terms: { ...inner(agreement, 'agreed_terms'), scope: respelt },
  };
  const refused = await post(na, VERIFY, { agreement: altered });
  assert.equal(refused.body.reason, 'invalid_offerer_signature', '1 is not 1.0');
});

test('an empty scope of any kind is an empty object', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  for (const [name, change] of [
    ['left out', drop('scope')],
    ...MISSING.map(([missing, scope]) => [missing, set({ scope })] as [string, Change]),
  ] as [string, Change][]) {
    await t.test(name, async () => {
      const made = await created(operate(na, OFFER, change(offerRequest(now))));
      assert.deepEqual(inner(made, 'requested_terms').scope, {});
      const counter = await created(operate(na, COUNTER, change(termsRequest(now, { offer }))));
      assert.deepEqual(inner(counter, 'agreed_terms').scope, {});
    });
  }
});

/** Neither the window nor the expiry has to lie in the future [trust-t20]. */
test('an offer may lie wholly in the past, and can then not be accepted', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const past = {
    valid_from: '2020-01-01T00:00:00Z',
    valid_until: '2020-01-02T00:00:00Z',
    expires_at: '2019-01-01T00:00:00Z',
  };
  const offer = await created(operate(na, OFFER, offerRequest(now, past)));
  const accepted = await operate(na, ACCEPT, { offer });
  assert.equal(outcomeWithCause(accepted), '422 accept_rejected offer_expired');
  const countered = await operate(na, COUNTER, termsRequest(now, { offer }));
  assert.equal(outcomeWithCause(countered), '422 counter_rejected offer_expired');
});

// Timestamps of requests [trust-1-3]

const READABLE: readonly (readonly [string, string])[] = [
  ['2030-01-01T02:00:00+02:00', '2030-01-01T00:00:00Z'],
  ['2029-12-31T18:30:00-05:30', '2030-01-01T00:00:00Z'],
  ['2030-01-01T02:00:00+0200', '2030-01-01T00:00:00Z'],
  ['2030-01-01T02:00:00+02', '2030-01-01T00:00:00Z'],
  ['2030-01-01T00:00:00-00:00', '2030-01-01T00:00:00Z'],
  ['2030-01-01T00:00:00', '2030-01-01T00:00:00Z'],
  ['2030-01-01T00:00', '2030-01-01T00:00:00Z'],
  ['2030-01-01', '2030-01-01T00:00:00Z'],
  ['2030-01-01t00:00:00z', '2030-01-01T00:00:00Z'],
  ['2030-01-01 00:00:00,25', '2030-01-01T00:00:00.250000Z'],
  ['2030-01-01T00:00:00.000Z', '2030-01-01T00:00:00Z'],
  ['2030-01-01T00:00:00.123456789Z', '2030-01-01T00:00:00.123456Z'],
  ['2030-01-01T00:00:00.000001Z', '2030-01-01T00:00:00.000001Z'],
  ['2028-02-29T23:59:59Z', '2028-02-29T23:59:59Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
  ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z'],
  ['9999-12-31T18:59:59-05:00', '9999-12-31T23:59:59Z'],
  ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999999Z'],
  ['2400-01-01T00:00:00.000001Z', '2400-01-01T00:00:00.000001Z'],
];

const UNREADABLE: readonly (readonly [string, JsonValue])[] = [
  ...WRONG_TIMESTAMPS.map((text) => [JSON.stringify(text), text] as const),
  ...['9999-12-31T23:59:59-05:00', '0001-01-01T00:00:00+00:01', '2030-01-01T00:00:00+2:00'].map(
    (text) => [text, text] as const,
  ),
  ...['10000-01-01T00:00:00Z', '+12030-01-01T00:00:00Z', ' 2030-01-01', '2030-01-01Z '].map(
    (text) => [text, text] as const,
  ),
  ['seconds since the epoch', 1_893_456_000],
  ['seconds as a float', new JsonFloat(1_893_456_000.5)],
  ...valuesExcept('a string'),
];

test('timestamps of an offer are converted to UTC, never relabeled', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  for (const [given, stored] of READABLE) {
    await t.test(given, async () => {
      const until = { valid_from: '0001-01-01T00:00:00Z', valid_until: given, expires_at: given };
      const from = { valid_from: given, valid_until: '9999-12-31T23:59:59Z' };
      const isFirst = stored.startsWith('0001');
      const offer = await created(operate(na, OFFER, offerRequest(now, isFirst ? from : until)));
      const terms = inner(offer, 'requested_terms');
      assert.equal(isFirst ? terms.valid_from : terms.valid_until, stored);
      if (!isFirst) assert.equal(offer.expires_at, stored);
      assert.ok(verifies(offer, na.audience));
    });
  }
});

test('what is no timestamp is refused with the code of its route', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  for (const [name, value] of UNREADABLE) {
    await t.test(name, async () => {
      for (const member of ['valid_from', 'valid_until', 'expires_at']) {
        const answer = await operate(na, OFFER, offerRequest(now, { [member]: value }));
        assert.equal(outcomeWithCause(answer), `400 invalid_timestamps invalid_${member}`);
        if (member === 'expires_at') continue;
        const countered = await operate(na, COUNTER, termsRequest(now, { offer, [member]: value }));
        assert.equal(outcomeWithCause(countered), `400 missing_counter_fields invalid_${member}`);
      }
    });
  }
});

test('a window has to end after it begins', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  for (const [name, valid_from, valid_until, isInOrder] of [
    ['at once', '2030-01-01T00:00:00Z', '2030-01-01T00:00:00Z', false],
    ['at once in another offset', '2030-01-01T00:00:00Z', '2030-01-01T02:00:00+02:00', false],
    ['a microsecond before', '2030-01-01T00:00:00.000001Z', '2030-01-01T00:00:00Z', false],
    ['by text after, by time before', '2030-01-01T00:00:00Z', '2030-01-01T01:00:00+02:00', false],
    ['a microsecond after', '2030-01-01T00:00:00Z', '2030-01-01T00:00:00.000001Z', true],
    ['by text before, by time after', '2030-01-01T02:00:00+02:00', '2030-01-01T01:00:00Z', true],
    ['centuries after', '0001-01-01', '9999-12-31', true],
  ] as const) {
    await t.test(name, async () => {
      const window = { valid_from, valid_until };
      const offered = await operate(na, OFFER, offerRequest(now, window));
      const countered = await operate(na, COUNTER, termsRequest(now, { offer, ...window }));
      assert.deepEqual(
        [outcomeWithCause(offered), outcomeWithCause(countered)],
        isInOrder
          ? ['201', '201']
          : [
              '400 invalid_timestamps timestamp_order',
              '400 missing_counter_fields timestamp_order',
            ],
      );
    });
  }
});

// What is wrong with a request, in the order of the checks

type Fault = readonly [code: string, cause: string, change: Change];

const OFFER_FAULTS = {
  'no responder': [
    '400 missing_offer_fields',
    'missing_responder_sovereign_id',
    drop('responder_sovereign_id'),
  ],
  'no capabilities': ['400 missing_offer_fields', 'invalid_capabilities', drop('capabilities')],
  'no beginning': ['400 invalid_timestamps', 'invalid_valid_from', drop('valid_from')],
  'no end': ['400 invalid_timestamps', 'invalid_valid_until', drop('valid_until')],
  'no expiry': ['400 invalid_timestamps', 'invalid_expires_at', drop('expires_at')],
  'a window out of order': [
    '400 invalid_timestamps',
    'timestamp_order',
    set({ valid_from: '2030-01-02', valid_until: '2030-01-01' }),
  ],
  'a scope that is a list': ['422 offer_rejected', 'invalid_scope', set({ scope: ['eu'] })],
} as const satisfies { readonly [name: string]: Fault };

const COUNTER_FAULTS = {
  'no offer': ['400 missing_counter_fields', 'missing_offer', drop('offer')],
  'no capabilities': ['400 missing_counter_fields', 'invalid_capabilities', drop('capabilities')],
  'no offer by its form': [
    '400 invalid_offer',
    'invalid_offer',
    alteredOffer(drop('graph_digest')),
  ],
  'no beginning': ['400 missing_counter_fields', 'invalid_valid_from', drop('valid_from')],
  'no end': ['400 missing_counter_fields', 'invalid_valid_until', drop('valid_until')],
  'a window out of order': [
    '400 missing_counter_fields',
    'timestamp_order',
    set({ valid_from: '2030-01-02', valid_until: '2030-01-01' }),
  ],
  'a scope that is a list': ['422 counter_rejected', 'invalid_scope', set({ scope: ['eu'] })],
  'a capability that was not offered': [
    '422 counter_rejected',
    'capabilities_not_offered',
    set({ capabilities: ['read', 'delete'] }),
  ],
  'an offer that was tampered with': [
    '422 counter_rejected',
    'invalid_offer_signature',
    alteredOffer(set({ created_at: '2026-01-01T00:00:00Z' })),
  ],
} as const satisfies { readonly [name: string]: Fault };

/** Changes the offer inside a body; leaves a body without one unchanged. */
function alteredOffer(change: Change): Change {
  return (body) =>
    body.offer === undefined ? body : { ...body, offer: change(inner(body, 'offer')) };
}

/** Later faults are applied first, so that an earlier one can undo their members. */
function spoilt<Name extends string>(
  body: JsonObject,
  faults: { readonly [name in Name]: Fault },
  names: readonly Name[],
): JsonObject {
  return names.toReversed().reduce((spoiling, name) => faults[name][2](spoiling), body);
}

for (const { path, faults } of [
  { path: OFFER, faults: OFFER_FAULTS },
  { path: COUNTER, faults: COUNTER_FAULTS },
] as { path: string; faults: { readonly [name: string]: Fault } }[]) {
  test(`${path} reports the first fault`, async (t) => {
    await using na = await startUnlimited();
    const { alpha, beta, now } = await parties(na);
    const offer = offerBetween(beta, alpha, now);
    const body = path === OFFER ? offerRequest(now) : termsRequest(now, { offer });
    for (const { first, names } of combinationsOf(Object.keys(faults))) {
      await t.test(`${first}, of ${names.join(', ')}`, async () => {
        const answer = await operate(na, path, spoilt(body, faults, names));
        const [code, cause] = faults[first] ?? [];
        assert.equal(outcome(answer), code);
        if (names.length === 1) assert.equal(answer.body.error.details.cause, cause);
        assert.equal(typeof answer.body.error.details.cause, 'string');
      });
    }
    assert.deepEqual(audited(na, 'capability_offer_built'), []);
    assert.deepEqual(audited(na, 'capability_counter_built'), []);
  });
}

const LONG_LIST = Array.from({ length: 4097 }, (_, index) => `c${index}`);

test('each member of an offer or a counter has its type, and some of its emptiness', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const capabilities = [...LONG_LIST.slice(1), 'read', 'write'].slice(-4096);
  const requested_terms = agreedTerms(now, { capabilities });
  const offer = offerBetween(beta, alpha, now, { requested_terms });
  const missing = (member: string, code: string, cause: string) =>
    MISSING.map(
      ([name, value]) => [`${member} ${name}`, { [member]: value }, code, cause] as const,
    );
  const wrong = (
    member: string,
    values: readonly (readonly [string, JsonValue])[],
    code: string,
    cause: string,
  ) =>
    values.map(([name, value]) => [`${member} ${name}`, { [member]: value }, code, cause] as const);
  const notText = valuesExcept(
    'null',
    'false',
    'an empty string',
    'a string',
    'an empty list',
    'an empty object',
  );
  const notObject = [
    ...valuesExcept(
      'null',
      'false',
      'an empty string',
      'an empty list',
      'an empty object',
      'an object',
    ),
  ];
  const lists: (readonly [string, JsonValue])[] = [
    ['with a number', ['read', 5]],
    ['with null', ['read', null]],
    ['with an empty string', ['read', '']],
    ['with a list', [['read']]],
    ['with an object', [{ read: true }]],
  ];
  const NO_LIST = valuesExcept('a list');
  const forOffer = [
    ...missing(
      'responder_sovereign_id',
      '400 missing_offer_fields',
      'missing_responder_sovereign_id',
    ),
    ...wrong(
      'responder_sovereign_id',
      notText,
      '422 offer_rejected',
      'invalid_responder_sovereign_id',
    ),
    ...wrong('capabilities', NO_LIST, '400 missing_offer_fields', 'invalid_capabilities'),
    ...wrong(
      'capabilities',
      [['of 4097', LONG_LIST]],
      '400 missing_offer_fields',
      'invalid_capabilities',
    ),
    ...wrong('capabilities', lists, '422 offer_rejected', 'invalid_capabilities'),
    ...wrong('scope', notObject, '422 offer_rejected', 'invalid_scope'),
  ];
  const forCounter = [
    ...missing('offer', '400 missing_counter_fields', 'missing_offer'),
    ...wrong(
      'offer',
      valuesExcept('null', 'false', 'an empty string', 'an empty list', 'an empty object'),
      '400 invalid_offer',
      'invalid_offer',
    ),
    ...wrong('capabilities', NO_LIST, '400 missing_counter_fields', 'invalid_capabilities'),
    ...wrong(
      'capabilities',
      [['of 4097', LONG_LIST]],
      '400 missing_counter_fields',
      'invalid_capabilities',
    ),
    ...wrong('capabilities', lists, '422 counter_rejected', 'invalid_capabilities'),
    ...wrong('scope', notObject, '422 counter_rejected', 'invalid_scope'),
  ];
  for (const [path, body, table] of [
    [OFFER, offerRequest(now), forOffer],
    [COUNTER, termsRequest(now, { offer }), forCounter],
  ] as const) {
    for (const [name, changes, code, cause] of table) {
      await t.test(`${path}: ${name}`, async () => {
        const answer = await operate(na, path, { ...body, ...changes });
        assert.equal(outcomeWithCause(answer), `${code} ${cause}`);
      });
    }
    await t.test(`${path}: 4096 capabilities are not too many`, async () => {
      const record = await created(operate(na, path, { ...body, capabilities }));
      const terms = inner(record, path === OFFER ? 'requested_terms' : 'agreed_terms');
      assert.deepEqual(terms.capabilities, capabilities);
    });
  }
});

test('members that no request has are ignored', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const claims = {
    offer_id: 'chosen',
    offerer_sovereign_id: 'gamma',
    graph_digest: 'chosen',
    freshness_commitment: 9,
    signatures: [{ key_id: 'k', sig: 's' }],
    created_at: '2020-01-01T00:00:00Z',
  };
  const offer = await created(operate(na, OFFER, offerRequest(now, claims)));
  assert.notEqual(offer.offer_id, 'chosen');
  assert.equal(offer.offerer_sovereign_id, 'alpha');
  assert.equal(offer.graph_digest, await graphDigest(na));
  assert.equal(inner(offer, 'requested_terms').freshness_commitment, 0);
  assert.equal(offer.created_at, formatInstant(now));
  assert.ok(verifies(offer, na.audience));
});

// Counters

test('a counter answers the offer with our evidence about the offerer, and is audited', async () => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  const request = termsRequest(now, {
    offer,
    capabilities: ['write', 'write'],
    scope: { rate: new JsonFloat(2) },
    valid_until: formatInstant(now + 9 * HOUR),
  });
  const counter = await created(operate(na, COUNTER, request, { operator: na.standard }));
  const { responder_evidence, signatures, ...rest } = counter;
  assert.equal(
    canonicalJson(rest),
    canonicalJson({
      offer_id: offer.offer_id as string,
      offerer_sovereign_id: 'beta',
      responder_sovereign_id: 'alpha',
      agreed_terms: {
        capabilities: ['write', 'write'],
        scope: { rate: new JsonFloat(2) },
        valid_from: formatInstant(now),
        valid_until: formatInstant(now + 9 * HOUR),
        freshness_commitment: 0,
      },
      offerer_evidence: inner(offer, 'offerer_evidence'),
      graph_digest: offer.graph_digest as string,
      expires_at: offer.expires_at as string,
    }),
  );
  assertOwnEvidence(na, responder_evidence as JsonObject, {
    source_sovereign_id: 'alpha',
    target_sovereign_id: 'beta',
    verdict: 'allow',
    reason: 'active_treaty_path',
    trusted: true,
    hop_count: 1,
    graph_digest: await graphDigest(na),
    signal: 'active_treaty_path',
    severity: 'info',
  });
  assert.deepEqual(
    signaturesOf(counter).map(({ key_id }) => key_id),
    [na.audience],
  );
  assert.deepEqual(agreementSigners(counter, na.audience), [na.audience]);
  assert.deepEqual(audited(na, 'capability_counter_built'), [
    {
      original_offer_id: offer.offer_id,
      counter_offer_id: offer.offer_id,
      offerer_sovereign_id: 'alpha',
      capabilities: ['write', 'write'],
    },
  ]);
});

test('the capabilities of a counter are a subset of those offered, as sets', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const requested_terms = agreedTerms(now, { capabilities: ['read', 'write', 'data:*'] });
  const offer = offerBetween(beta, alpha, now, { requested_terms });
  for (const [capabilities, isSubset] of [
    [['read'], true],
    [['write', 'read', 'data:*'], true],
    [['read', 'read', 'read', 'read'], true],
    [['data:*'], true],
    [['data:x'], false],
    [['*'], false],
    [['Read'], false],
    [['read '], false],
    [['read', 'delete'], false],
    [['constructor'], false],
  ] as const) {
    await t.test(capabilities.join(), async () => {
      const request = termsRequest(now, { offer, capabilities: [...capabilities] });
      const answer = await operate(na, COUNTER, request);
      const expected = isSubset ? '201' : '422 counter_rejected capabilities_not_offered';
      assert.equal(outcomeWithCause(answer), expected);
    });
  }
});

// Acceptance

test('accepting an offer of a recognized sovereign makes an agreement with our signature', async () => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  const agreement = await created(operate(na, ACCEPT, { offer }, { operator: na.standard }));
  const { agreement_id, responder_evidence, signatures, ...rest } = agreement;
  assert.match(String(agreement_id), UUID);
  assert.equal(
    canonicalJson(rest),
    canonicalJson({
      offer_id: offer.offer_id as string,
      offerer_sovereign_id: 'beta',
      responder_sovereign_id: 'alpha',
      agreed_terms: inner(offer, 'requested_terms'),
      offerer_evidence: inner(offer, 'offerer_evidence'),
      graph_digest: offer.graph_digest as string,
      established_at: formatInstant(now),
      expires_at: inner(offer, 'requested_terms').valid_until as string,
    }),
  );
  assertOwnEvidence(na, responder_evidence as JsonObject, {
    source_sovereign_id: 'alpha',
    target_sovereign_id: 'beta',
    verdict: 'allow',
    reason: 'active_treaty_path',
    trusted: true,
    hop_count: 1,
    graph_digest: await graphDigest(na),
    signal: 'active_treaty_path',
    severity: 'info',
  });
  assert.deepEqual(
    signaturesOf(agreement).map(({ key_id }) => key_id),
    [na.audience],
  );
  assert.deepEqual(agreementSigners(agreement, na.audience), [na.audience]);
  assert.deepEqual(audited(na, 'agreement_accepted'), [
    { agreement_id, offerer_sovereign_id: 'beta', responder_sovereign_id: 'alpha' },
  ]);
  const again = await created(operate(na, ACCEPT, { offer }));
  assert.notEqual(again.agreement_id, agreement_id);
});

test('our own offer can be accepted and countered here, though the evidence of the other side blocks', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const offer = await created(operate(na, OFFER, offerRequest(now)));
  const direct = await created(operate(na, ACCEPT, { offer }));
  const counter = await created(operate(na, COUNTER, termsRequest(now, { offer })));
  const countered = await created(operate(na, ACCEPT, { counter, original_offer: offer }));
  for (const record of [direct, counter]) {
    assertOwnEvidence(na, inner(record, 'responder_evidence'), {
      source_sovereign_id: 'beta',
      target_sovereign_id: 'alpha',
      verdict: 'block',
      reason: 'no_active_treaty_path',
      trusted: false,
      hop_count: 0,
      graph_digest: await graphDigest(na),
      signal: 'no_active_treaty_path',
      severity: 'block',
    });
  }
  assert.deepEqual(agreementSigners(direct, na.audience), [na.audience]);
  assert.deepEqual(agreementSigners(countered, na.audience), [na.audience, na.audience]);
  for (const agreement of [direct, countered]) {
    const answer = await post(na, VERIFY, { agreement });
    assert.deepEqual([answer.body.accepted, answer.body.reason], [true, 'accepted']);
  }
});

test('accepting a counter makes an agreement with both signatures, the one of the responder first', async () => {
  await using na = await startUnlimited();
  const { beta, now } = await parties(na);
  const offer = await created(operate(na, OFFER, offerRequest(now)));
  const counter = counterTo(offer, beta, now, {
    agreed_terms: agreedTerms(now, { capabilities: ['write'], scope: { other: new JsonFloat(3) } }),
  });
  const body = { counter: { ...counter, extra: 1 }, original_offer: offer };
  const agreement = await created(operate(na, ACCEPT, body));
  const { agreement_id, signatures, ...rest } = agreement;
  assert.match(String(agreement_id), UUID);
  assert.equal(
    canonicalJson(rest),
    canonicalJson({
      offer_id: offer.offer_id as string,
      offerer_sovereign_id: 'alpha',
      responder_sovereign_id: 'beta',
      agreed_terms: inner(counter, 'agreed_terms'),
      offerer_evidence: inner(offer, 'offerer_evidence'),
      responder_evidence: inner(counter, 'responder_evidence'),
      graph_digest: offer.graph_digest as string,
      established_at: formatInstant(now),
      expires_at: formatInstant(now + HOUR),
    }),
  );
  assert.deepEqual(agreementSigners(agreement, na.audience, beta.key.publicKey), [
    beta.key.publicKey,
    na.audience,
  ]);
  assert.deepEqual((signatures as JsonObject[])[0], signaturesOf(counter)[0], 'as it was given');
  assert.equal(signaturesOf(agreement)[1]?.key_id, na.audience);
  assert.deepEqual(audited(na, 'agreement_accepted'), [
    { agreement_id, offerer_sovereign_id: 'alpha', responder_sovereign_id: 'beta' },
  ]);
  const answer = await post(na, VERIFY, {
    agreement,
    offerer_public_keys: [na.audience],
    responder_public_keys: [beta.key.publicKey],
  });
  assert.equal(answer.body.reason, 'accepted');
});

test('which way an acceptance takes depends on the members that are there', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(alpha, beta, now);
  const counter = counterTo(offer, beta, now);
  const other = offerBetween(beta, alpha, now);
  for (const [name, body, expected, parties] of [
    ['an offer', { offer: other }, '201', ['beta', 'alpha']],
    ['a counter and its offer', { counter, original_offer: offer }, '201', ['alpha', 'beta']],
    [
      'all three: the counter wins',
      { offer: other, counter, original_offer: offer },
      '201',
      ['alpha', 'beta'],
    ],
    ['an offer and a counter', { offer: other, counter }, '201', ['beta', 'alpha']],
    [
      'an offer and an original offer',
      { offer: other, original_offer: offer },
      '201',
      ['beta', 'alpha'],
    ],
    ['nothing', {}, '400 missing_accept_fields missing_offer', null],
    ['a counter alone', { counter }, '400 missing_accept_fields missing_offer', null],
    [
      'an original offer alone',
      { original_offer: offer },
      '400 missing_accept_fields missing_offer',
      null,
    ],
    ['null for the offer', { offer: null }, '422 accept_rejected invalid_offer', null],
    ['{} for the offer', { offer: {} }, '422 accept_rejected invalid_offer', null],
    ['false for the offer', { offer: false }, '422 accept_rejected invalid_offer', null],
    ['text for the offer', { offer: 'text' }, '422 accept_rejected invalid_offer', null],
    ['a list for the offer', { offer: [other] }, '422 accept_rejected invalid_offer', null],
    ['a counter for the offer', { offer: counter }, '422 accept_rejected invalid_offer', null],
    [
      'null for the counter, with a good offer beside it',
      { offer: other, counter: null, original_offer: offer },
      '422 accept_rejected invalid_counter',
      null,
    ],
    [
      'null for the original offer, with a good offer beside it',
      { offer: other, counter, original_offer: null },
      '422 accept_rejected invalid_offer',
      null,
    ],
    [
      'null for both, with a good offer beside them',
      { offer: other, counter: null, original_offer: null },
      '422 accept_rejected invalid_counter',
      null,
    ],
  ] as [string, JsonObject, string, [string, string] | null][]) {
    await t.test(name, async () => {
      const answer = await operate(na, ACCEPT, body);
      assert.equal(outcomeWithCause(answer), expected);
      if (parties === null) return;
      const { offerer_sovereign_id, responder_sovereign_id } = answer.body;
      assert.deepEqual([offerer_sovereign_id, responder_sovereign_id], parties);
    });
  }
});

// Whether an offer is usable [trust-4-2], on each of the three ways

type MakeOffer = (alpha: Party, beta: Party, now: number) => JsonObject;

const UNUSABLE: readonly (readonly [string, string, MakeOffer])[] = [
  [
    'between two others',
    'not_a_party',
    (_, beta, now) => offerBetween(beta, sovereign('gamma'), now),
  ],
  [
    'of a sovereign that is not recognized',
    'invalid_offer_signature',
    (alpha, _, now) => offerBetween(sovereign('gamma'), alpha, now),
  ],
  [
    'without signature',
    'invalid_offer_signature',
    (...given) => ({ ...peersOffer(...given), signatures: [] }),
  ],
  [
    'without signatures',
    'invalid_offer_signature',
    (...given) => without(peersOffer(...given), 'signatures'),
  ],
  [
    'signed by a stranger',
    'invalid_offer_signature',
    (...given) => resigned(peersOffer(...given), newKey()),
  ],
  [
    'of the peer, signed by us',
    'invalid_offer_signature',
    (alpha, beta, now) => resigned(peersOffer(alpha, beta, now), alpha.key),
  ],
  [
    'of ours, signed by the peer',
    'invalid_offer_signature',
    (alpha, beta, now) => resigned(offerBetween(alpha, beta, now), beta.key),
  ],
  [
    'with wider terms than were signed',
    'invalid_offer_signature',
    (alpha, beta, now) => ({
      ...peersOffer(alpha, beta, now),
      requested_terms: agreedTerms(now, { capabilities: ['read', 'write', 'admin'] }),
    }),
  ],
  [
    'with evidence from another offer',
    'invalid_offer_signature',
    (alpha, beta, now) => ({
      ...peersOffer(alpha, beta, now),
      offerer_evidence: evidence(beta, alpha, now),
    }),
  ],
  [
    'prolonged',
    'invalid_offer_signature',
    (alpha, beta, now) => ({
      ...peersOffer(alpha, beta, now),
      expires_at: formatInstant(now + HOUR),
    }),
  ],
  [
    'with another id',
    'invalid_offer_signature',
    (alpha, beta, now) => ({ ...peersOffer(alpha, beta, now), offer_id: 'other' }),
  ],
  [
    'without an id, which each reader makes up',
    'invalid_offer_signature',
    (alpha, beta, now) => without(peersOffer(alpha, beta, now), 'offer_id'),
  ],
  [
    'expired a millisecond ago',
    'offer_expired',
    (alpha, beta, now) => offerBetween(beta, alpha, now, { expires_at: formatInstant(now - 1) }),
  ],
  [
    'expired a microsecond ago',
    'offer_expired',
    (alpha, beta, now) =>
      offerBetween(beta, alpha, now, { expires_at: formatInstant(now - 0.001) }),
  ],
  [
    'whose evidence blocks',
    'offerer_evidence_blocks',
    (alpha, beta, now) => {
      const offerer_evidence = evidence(beta, alpha, now, { verdict: 'block' });
      return offerBetween(beta, alpha, now, { offerer_evidence });
    },
  ],
  [
    'whose bare evidence blocks',
    'offerer_evidence_blocks',
    (alpha, beta, now) =>
      offerBetween(beta, alpha, now, { offerer_evidence: { verdict: 'block' } }),
  ],
  [
    'expired and blocking: expiry is reported first',
    'offer_expired',
    (alpha, beta, now) =>
      offerBetween(beta, alpha, now, {
        expires_at: formatInstant(now - SECOND),
        offerer_evidence: { verdict: 'block' },
      }),
  ],
  [
    'expired and badly signed: the signature is reported first',
    'invalid_offer_signature',
    (alpha, beta, now) =>
      resigned(
        offerBetween(beta, alpha, now, {
          expires_at: formatInstant(now - SECOND),
          offerer_evidence: { verdict: 'block' },
        }),
        newKey(),
      ),
  ],
  [
    'between two others, unsigned, expired and blocking: the parties are reported first',
    'not_a_party',
    (_, beta, now) => ({
      ...offerBetween(beta, sovereign('gamma'), now, {
        expires_at: formatInstant(now - SECOND),
        offerer_evidence: { verdict: 'block' },
      }),
      signatures: [],
    }),
  ],
];

function peersOffer(alpha: Party, beta: Party, now: number): JsonObject {
  return offerBetween(beta, alpha, now);
}

test('an offer that is not usable can be neither countered nor accepted, on any way', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  for (const [name, cause, make] of UNUSABLE) {
    await t.test(name, async () => {
      const offer = make(alpha, beta, now);
      const countered = await operate(na, COUNTER, termsRequest(now, { offer }));
      assert.equal(outcomeWithCause(countered), `422 counter_rejected ${cause}`);
      const accepted = await operate(na, ACCEPT, { offer });
      assert.equal(outcomeWithCause(accepted), `422 accept_rejected ${cause}`);
      const counter = counterTo({ offer_id: 'made up', ...offer }, beta, now);
      const finalized = await operate(na, ACCEPT, { counter, original_offer: offer });
      assert.equal(outcomeWithCause(finalized), `422 accept_rejected ${cause}`);
    });
  }
  assert.deepEqual(audited(na, 'agreement_accepted'), []);
  assert.deepEqual(audited(na, 'capability_counter_built'), []);
});

test('of an offer nothing but that is asked', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const stranger = newKey();
  const twice = resigned(offerBetween(beta, alpha, now), stranger, beta.key);
  const [signature] = signaturesOf(offerBetween(beta, alpha, now));
  const offer = offerBetween(beta, alpha, now);
  const many = Array.from({ length: 15 }, () => signature as JsonObject);
  for (const [name, given] of [
    ['that expires now', offerBetween(beta, alpha, now, { expires_at: formatInstant(now) })],
    ['whose second signature is right', twice],
    [
      'whose sixteenth signature is right',
      { ...offer, signatures: [...many, ...signaturesOf(offer)] },
    ],
    [
      'whose signature is labeled wrong',
      { ...offer, signatures: [{ ...signaturesOf(offer)[0], key_id: '' }] },
    ],
    ['with members nobody knows', { ...offer, status: 'open', issued_by: 'x' }],
    ['with empty evidence', offerBetween(beta, alpha, now, { offerer_evidence: {} })],
    [
      'with evidence of escalation',
      offerBetween(beta, alpha, now, { offerer_evidence: { verdict: 'escalate' } }),
    ],
    [
      'with evidence in capitals',
      offerBetween(beta, alpha, now, { offerer_evidence: { verdict: 'BLOCK' } }),
    ],
    [
      'with a verdict that is a number',
      offerBetween(beta, alpha, now, { offerer_evidence: { verdict: 5 } }),
    ],
    ['with a graph digest of any kind', offerBetween(beta, alpha, now, { graph_digest: '' })],
    [
      'with a window in the past',
      offerBetween(beta, alpha, now, {
        requested_terms: agreedTerms(now, {
          valid_from: '2020-01-01T00:00:00Z',
          valid_until: '2020-01-02T00:00:00Z',
        }),
      }),
    ],
    [
      'in another order and with an offset spelt out',
      Object.fromEntries(
        Object.entries({
          ...offer,
          expires_at: String(offer.expires_at).replace('Z', '+00:00'),
        }).reverse(),
      ),
    ],
  ] as [string, JsonObject][]) {
    await t.test(name, async () => {
      await created(
        operate(na, COUNTER, termsRequest(now, { offer: given, capabilities: ['read'] })),
      );
      const agreement = await created(operate(na, ACCEPT, { offer: given }));
      assert.deepEqual(agreementSigners(agreement, na.audience), [na.audience]);
    });
  }
});

test('an offer has its form: what lacks a member or has a wrong one is none', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  const [signature] = signaturesOf(offer);
  const terms = (changes: JsonObject) => ({ requested_terms: agreedTerms(now, changes) });
  for (const [name, given] of [
    ...[
      'offerer_sovereign_id',
      'responder_sovereign_id',
      'requested_terms',
      'graph_digest',
      'offerer_evidence',
      'expires_at',
    ].map((member) => [`without ${member}`, without(offer, member)] as [string, JsonObject]),
    ['17 signatures', { ...offer, signatures: Array(17).fill(signature) }],
    ['4097 capabilities', { ...offer, ...terms({ capabilities: LONG_LIST }) }],
    ['null for a list with a default', { ...offer, ...terms({ capabilities: null }) }],
    ['a datetime without offset', { ...offer, expires_at: '2030-01-01T00:00:00' }],
    ['a datetime that is a number', { ...offer, expires_at: 1_893_456_000 }],
    ['a negative freshness', { ...offer, ...terms({ freshness_commitment: -1 }) }],
    [
      'a freshness beyond safe integers',
      { ...offer, ...terms({ freshness_commitment: 2n ** 60n }) },
    ],
    ['a list for evidence', { ...offer, offerer_evidence: [] }],
    ['a float for evidence', { ...offer, offerer_evidence: new JsonFloat(1) }],
    ['a signature without its label', { ...offer, signatures: [{ sig: signature?.sig ?? '' }] }],
  ] as [string, JsonObject][]) {
    await t.test(name, async () => {
      const countered = await operate(na, COUNTER, termsRequest(now, { offer: given }));
      assert.equal(outcomeWithCause(countered), '400 invalid_offer invalid_offer');
      const accepted = await operate(na, ACCEPT, { offer: given });
      assert.equal(outcomeWithCause(accepted), '422 accept_rejected invalid_offer');
    });
  }
});

test('only treaties of our own that are in force say what keys a peer signs with', async (t) => {
  for (const [name, expected, arrange] of [
    ['our treaty', 'usable', (na, beta) => recognized(na, beta)],
    [
      'our treaty with several keys',
      'usable',
      (na, beta) =>
        recognized(na, beta, { subject_public_keys: [newKey().publicKey, beta.key.publicKey] }),
    ],
    [
      'the second of our treaties',
      'usable',
      async (na, beta) => {
        await recognized(na, beta, { subject_public_keys: [newKey().publicKey] });
        await recognized(na, beta);
      },
    ],
    [
      'our treaty in its last whole second',
      'usable',
      async (na, beta) => {
        await recognized(na, beta, { validity_hours: 1 });
        na.clock.advance(HOUR - SECOND);
      },
    ],
    [
      'our treaty that has just expired',
      'unusable',
      async (na, beta) => {
        await recognized(na, beta, { validity_hours: 1 });
        na.clock.advance(HOUR);
      },
    ],
    [
      'our treaty that is revoked',
      'unusable',
      async (na, beta) => {
        const { treaty_id } = await recognized(na, beta);
        await revokeTreaty(na, treaty_id);
      },
    ],
    [
      'the treaty of another sovereign',
      'unusable',
      (na, beta) => recognized(na, beta, { issuer_sovereign_id: 'gamma' }),
    ],
    [
      'the treaty of a sovereign we recognize',
      'unusable',
      async (na, beta) => {
        await recognized(na, sovereign('gamma'));
        await recognized(na, beta, { issuer_sovereign_id: 'gamma' });
      },
    ],
    [
      'our treaty with another sovereign of the same key',
      'unusable',
      (na, beta) => recognized(na, sovereign('gamma', beta.key)),
    ],
    ['no treaty', 'unusable', () => undefined],
  ] as [string, 'usable' | 'unusable', (na: TestAuthority, beta: Party) => unknown][]) {
    await t.test(`${name}: the records of the peer are ${expected}`, async () => {
      await using na = await startUnlimited();
      const [alpha, beta] = [ourselves(na), sovereign('beta')];
      await arrange(na, beta);
      const at = na.clock.now();
      const theirs = offerBetween(beta, alpha, at);
      const ours = offerBetween(alpha, beta, at);
      const counter = counterTo(ours, beta, at);
      const answers = [
        await operate(na, COUNTER, termsRequest(at, { offer: theirs })),
        await operate(na, ACCEPT, { offer: theirs }),
        await operate(na, ACCEPT, { counter, original_offer: ours }),
      ];
      assert.deepEqual(
        answers.map(outcomeWithCause),
        expected === 'usable'
          ? ['201', '201', '201']
          : [
              '422 counter_rejected invalid_offer_signature',
              '422 accept_rejected invalid_offer_signature',
              '422 accept_rejected invalid_counter_signature',
            ],
      );
      await created(operate(na, ACCEPT, { offer: ours }));
      const own = signedAgreement(counter, alpha.key);
      await created(operate(na, ACCEPT, { counter: own, original_offer: ours }));
    });
  }
});

// Whether a counter can be accepted [trust-4-3]

/** In order; each says how offer and counter are made. */
const UNACCEPTABLE = {
  capabilities_not_offered: { agreed_terms: { capabilities: ['read', 'delete'] } },
  offer_id_mismatch: { offer_id: 'another' },
  counter_differs_from_offer: { graph_digest: 'another' },
  not_the_offerer: {},
  counter_expired: { expires_at: '2020-01-01T00:00:00Z' },
  invalid_counter_signature: {},
} as const;

test('a counter that cannot be accepted is refused, and the first reason is reported', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const causes = Object.keys(UNACCEPTABLE) as (keyof typeof UNACCEPTABLE)[];
  for (const { first, names } of combinationsOf(causes)) {
    await t.test(`${first}, of ${names.join(', ')}`, async () => {
      const [offerer, responder] = names.includes('not_the_offerer')
        ? [beta, alpha]
        : [alpha, beta];
      const offer = offerBetween(offerer, responder, now);
      const changes: JsonObject = Object.assign({}, ...names.map((name) => UNACCEPTABLE[name]));
      const agreed_terms = agreedTerms(now, (changes.agreed_terms ?? {}) as JsonObject);
      const counter = counterTo(offer, responder, now, { ...changes, agreed_terms });
      const isForged = names.includes('invalid_counter_signature');
      const body = {
        counter: isForged ? signedAgreement(counter, newKey()) : counter,
        original_offer: offer,
      };
      assert.equal(
        outcomeWithCause(await operate(na, ACCEPT, body)),
        `422 accept_rejected ${first}`,
      );
    });
  }
  assert.deepEqual(audited(na, 'agreement_accepted'), []);
});

test('a counter is held against the offer and its signature in every member', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(alpha, beta, now);
  const counter = counterTo(offer, beta, now);
  const respelt = {
    ...inner(offer, 'offerer_evidence'),
    metadata: { weight: 1, kept: ['\u00e9'] },
  };
  const later = evidence(alpha, beta, now);
  for (const [name, given, cause] of [
    [
      'another offerer',
      counterTo(offer, beta, now, { offerer_sovereign_id: 'gamma' }),
      'counter_differs_from_offer',
    ],
    [
      'another responder',
      counterTo(offer, beta, now, { responder_sovereign_id: 'gamma' }),
      'counter_differs_from_offer',
    ],
    [
      'parties changed round',
      counterTo(offer, beta, now, {
        offerer_sovereign_id: 'beta',
        responder_sovereign_id: 'alpha',
      }),
      'counter_differs_from_offer',
    ],
    [
      'other evidence of the offerer',
      counterTo(offer, beta, now, { offerer_evidence: later }),
      'counter_differs_from_offer',
    ],
    [
      'evidence with 1 for 1.0',
      counterTo(offer, beta, now, { offerer_evidence: respelt }),
      'counter_differs_from_offer',
    ],
    [
      'evidence changed after signing',
      { ...counter, offerer_evidence: later },
      'counter_differs_from_offer',
    ],
    [
      'terms changed after signing',
      { ...counter, agreed_terms: agreedTerms(now, { capabilities: ['write'] }) },
      'invalid_counter_signature',
    ],
    [
      'scope changed after signing',
      { ...counter, agreed_terms: { ...inner(counter, 'agreed_terms'), scope: {} } },
      'invalid_counter_signature',
    ],
    [
      'evidence of the responder changed after signing',
      { ...counter, responder_evidence: later },
      'invalid_counter_signature',
    ],
    ['no signature', { ...counter, signatures: [] }, 'invalid_counter_signature'],
    [
      'the signature of a stranger',
      signedAgreement(counter, newKey()),
      'invalid_counter_signature',
    ],
    ['a signature over the whole record', resigned(counter, beta.key), 'invalid_counter_signature'],
    [
      'the signature of the offer',
      { ...counter, signatures: offer.signatures },
      'invalid_counter_signature',
    ],
    [
      'expired a microsecond ago',
      { ...counter, expires_at: formatInstant(now - 0.001) },
      'counter_expired',
    ],
    ['no terms', without(counter, 'agreed_terms'), 'invalid_counter'],
    ['no evidence of the responder', without(counter, 'responder_evidence'), 'invalid_counter'],
    [
      '17 signatures',
      { ...counter, signatures: Array(17).fill(signaturesOf(counter)[0]) },
      'invalid_counter',
    ],
    ['text for a signature', { ...counter, signatures: ['text'] }, 'invalid_counter'],
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      const answer = await operate(na, ACCEPT, { counter: given, original_offer: offer });
      assert.equal(outcomeWithCause(answer), `422 accept_rejected ${cause}`);
    });
  }
});

test('of a counter nothing but that is asked', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(alpha, beta, now);
  const counter = counterTo(offer, beta, now);
  const wider = agreedTerms(now, {
    capabilities: ['read', 'read', 'read'],
    scope: { anything: true },
    valid_from: '2000-01-01T00:00:00Z',
    valid_until: '2090-01-01T00:00:00Z',
    freshness_commitment: 77,
  });
  for (const [name, given] of [
    ['signed by us for the other side', signedAgreement(counter, alpha.key)],
    ['whose second signature is right', signedAgreement(counter, newKey(), beta.key)],
    [
      'whose signature is labeled wrong',
      { ...counter, signatures: [{ ...signaturesOf(counter)[0], key_id: 'x' }] },
    ],
    [
      'with another window, scope and freshness',
      counterTo(offer, beta, now, { agreed_terms: wider }),
    ],
    [
      'without capabilities',
      counterTo(offer, beta, now, { agreed_terms: agreedTerms(now, { capabilities: [] }) }),
    ],
    ['that expires now', { ...counter, expires_at: formatInstant(now) }],
    ['that expires later than the offer', { ...counter, expires_at: '2090-01-01T00:00:00Z' }],
    [
      'whose evidence blocks',
      counterTo(offer, beta, now, { responder_evidence: { verdict: 'block' } }),
    ],
    ['with members nobody knows', { ...counter, counter_id: 'x', status: 'open' }],
  ] as [string, JsonObject][]) {
    await t.test(name, async () => {
      const agreement = await created(
        operate(na, ACCEPT, { counter: given, original_offer: offer }),
      );
      const terms = inner(given, 'agreed_terms');
      assert.equal(canonicalJson(inner(agreement, 'agreed_terms')), canonicalJson(terms));
      assert.equal(agreement.expires_at, terms.valid_until);
      assert.equal(agreementSigners(agreement, na.audience).at(-1), na.audience);
      const carried = signaturesOf(agreement).slice(0, -1);
      assert.deepEqual(carried, signaturesOf(given));
    });
  }
});

test('no agreement is made with more signatures than one is read with', async () => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(alpha, beta, now);
  const counter = counterTo(offer, beta, now);
  const copies = (count: number) => ({
    counter: { ...counter, signatures: Array(count).fill(signaturesOf(counter)[0]) },
    original_offer: offer,
  });
  const agreement = await created(operate(na, ACCEPT, copies(15)));
  assert.equal((await post(na, VERIFY, { agreement })).status, 200);
  assert.equal(outcome(await operate(na, ACCEPT, copies(16))), '422 accept_rejected');
});

/** Inside a member that is kept verbatim, one change represents all; the public test makes all of them. */
const VERBATIM = /_evidence\.(?!verdict)/;

test('no member of an offer or counter can be changed without being noticed', async () => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const theirs = offerBetween(beta, alpha, now);
  const ours = offerBetween(alpha, beta, now);
  const counter = counterTo(ours, beta, now);
  await eachOf(mutationsOf(theirs, VERBATIM), async ({ name, path, record }) => {
    if (path.endsWith('.key_id')) return;
    const accepted = await operate(na, ACCEPT, { offer: record });
    assert.equal(outcome(accepted), '422 accept_rejected', name);
    const countered = await operate(na, COUNTER, termsRequest(now, { offer: record }));
    const code = outcome(countered);
    assert.ok(['400 invalid_offer', '422 counter_rejected'].includes(code), `${name}: ${code}`);
  });
  await eachOf(mutationsOf(counter, VERBATIM), async ({ name, path, record }) => {
    if (path.endsWith('.key_id')) return;
    const answer = await operate(na, ACCEPT, { counter: record, original_offer: ours });
    assert.equal(outcome(answer), '422 accept_rejected', name);
  });
  assert.deepEqual(audited(na, 'agreement_accepted'), []);
});

// The front door

for (const path of [OFFER, COUNTER, ACCEPT]) {
  test(`${path} knows its operator before it reads the body`, async (t) => {
    await using na = await startUnlimited();
    const { alpha, beta, now } = await parties(na);
    const offer = offerBetween(beta, alpha, now);
    const body = {
      [OFFER]: offerRequest(now),
      [COUNTER]: termsRequest(now, { offer }),
      [ACCEPT]: { offer },
    }[path] as JsonObject;
    for (const [name, expected, ask] of AT_THE_OPERATORS_DOOR) {
      await t.test(name, async () => {
        assert.equal(outcome(await ask(na, path, body)), expected);
      });
    }
  });
}

test('a refused request spends its nonce and leaves nothing else', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const graph = (await get(na, '/recognition-graph')).text;
  const events = auditEvents(na).length;
  for (const [path, body, expected] of [
    [OFFER, {}, '400 missing_offer_fields'],
    [OFFER, offerRequest(now, { scope: 'x' }), '422 offer_rejected'],
    [COUNTER, {}, '400 missing_counter_fields'],
    [ACCEPT, { offer: null }, '422 accept_rejected'],
  ] as [string, JsonObject, string][]) {
    const request = operatorRequest(na, path, body);
    assert.equal(outcome(await sendSigned(na, request)), expected);
    assert.equal(auditEvents(na).length, events, 'no event');
  }
  const request = operatorRequest(na, OFFER, {});
  await sendSigned(na, request);
  assert.equal(outcome(await sendSigned(na, request)), '401 admin_auth_failed');
  assert.deepEqual(audited(na, 'admin_auth_failed').at(-1)?.reason, 'nonce_replay');
  assert.equal(auditEvents(na).length, events + 1);
  assert.equal((await get(na, '/recognition-graph')).text, graph);
});

test('agreement routes share the bucket of the operators with all others', async () => {
  await using na = await startUnlimited({ environment: { MESH_RATE_LIMIT_ADMIN: '' } });
  const paths = [OFFER, COUNTER, ACCEPT, '/admin/boundary/decide', '/admin/trust-evidence'];
  for (let asked = 0; asked < 30; asked += 1) {
    assert.notEqual((await post(na, paths[asked % paths.length] ?? OFFER, {})).status, 429);
  }
  for (const path of [...paths, '/admin/invite']) {
    assert.equal(outcome(await operate(na, path)), '429 rate_limit_exceeded');
    const unreadable = await send(na, 'POST', path, { body: '{' });
    assert.equal(outcome(unreadable), '429 rate_limit_exceeded', 'before the body');
  }
  na.clock.advance(60 * SECOND);
  assert.equal(outcome(await operate(na, OFFER)), '400 missing_offer_fields');
});

// Verification [trust-6-1]

test('verifying an agreement says who signed it', async (t) => {
  await using na = await startUnlimited();
  const [beta, gamma, stranger] = [sovereign('beta'), sovereign('gamma'), newKey()];
  const now = na.clock.now();
  const agreement = agreementBetween(beta, gamma, now);
  const signed = (...signers: (typeof stranger)[]) => signedAgreement(agreement, ...signers);
  const [{ sig } = { sig: '' }] = signaturesOf(signed(stranger));
  const junk = (text: string) => ({ key_id: 'x', sig: text });
  const own = signaturesOf(agreement);
  const sixteen = [...Array(14).fill(junk(sig)), ...own];
  const long = agreementBetween(beta, gamma, now, {
    agreed_terms: agreedTerms(now, { capabilities: LONG_LIST.slice(0, 4096) }),
  });
  for (const [name, record, reason] of [
    ['both', agreement, 'accepted'],
    ['both the other way round', signed(beta.key, gamma.key), 'accepted'],
    ['a stranger too', signed(stranger, gamma.key, stranger, beta.key), 'accepted'],
    ['both, with 14 others before', { ...agreement, signatures: sixteen }, 'accepted'],
    [
      'both, labeled wrong',
      { ...agreement, signatures: own.map(({ sig: text }) => junk(text)) },
      'accepted',
    ],
    [
      'both, and text that is no signature',
      { ...agreement, signatures: [junk(''), junk('%'), ...own] },
      'accepted',
    ],
    ['both, over 4096 capabilities', long, 'accepted'],
    ['nobody', { ...agreement, signatures: [] }, 'missing_offerer_signature'],
    ['nobody, the member left out', without(agreement, 'signatures'), 'missing_offerer_signature'],
    ['a stranger', signed(stranger), 'invalid_offerer_signature'],
    ['two strangers', signed(stranger, newKey()), 'invalid_offerer_signature'],
    ['the responder', signed(gamma.key), 'invalid_offerer_signature'],
    ['the responder and a stranger', signed(gamma.key, stranger), 'invalid_offerer_signature'],
    ['the offerer', signed(beta.key), 'missing_responder_signature'],
    ['the offerer twice', signed(beta.key, beta.key), 'invalid_responder_signature'],
    ['the offerer and a stranger', signed(beta.key, stranger), 'invalid_responder_signature'],
    [
      'both over the whole record',
      resigned(agreement, beta.key, gamma.key),
      'invalid_offerer_signature',
    ],
    ['an expired agreement', agreementBetween(beta, gamma, now - 9 * HOUR), 'accepted'],
    [
      'blocking evidence',
      agreementBetween(beta, gamma, now, {
        offerer_evidence: { verdict: 'block' },
        responder_evidence: {},
      }),
      'accepted',
    ],
    [
      'other members outside the signed seven',
      { ...agreement, expires_at: '2090-01-01T00:00:00Z', established_at: '2000-01-01T00:00:00Z' },
      'accepted',
    ],
    ['without the time it was established', without(agreement, 'established_at'), 'accepted'],
    ['with members nobody knows', { ...agreement, status: 'revoked' }, 'accepted'],
    [
      'a freshness as an integral float',
      {
        ...agreement,
        agreed_terms: {
          ...inner(agreement, 'agreed_terms'),
          freshness_commitment: new JsonFloat(3),
        },
      },
      'accepted',
    ],
    [
      'the same end in another offset',
      {
        ...agreement,
        agreed_terms: {
          ...inner(agreement, 'agreed_terms'),
          valid_until: formatInstant(now + 3 * HOUR).replace('Z', '+02:00'),
        },
      },
      'invalid_offerer_signature',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(`${name}: ${reason}`, async () => {
      const answer = await post(na, VERIFY, {
        agreement: record,
        offerer_public_keys: [beta.key.publicKey],
        responder_public_keys: [gamma.key.publicKey],
      });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.body, {
        accepted: reason === 'accepted',
        reason,
        agreement_id: record.agreement_id,
      });
    });
  }
});

test('an agreement without an id is given one by its reader, and its signatures still count', async () => {
  await using na = await startUnlimited();
  const alpha = ourselves(na);
  const agreement = without(agreementBetween(alpha, alpha, na.clock.now()), 'agreement_id');
  const { body } = await post(na, VERIFY, { agreement });
  assert.match(body.agreement_id, UUID);
  assert.equal(body.accepted, true);
});

test('one signature counts for both parties where the caller gives one key for both', async (t) => {
  await using na = await startUnlimited();
  const [alpha, beta] = [ourselves(na), sovereign('beta')];
  const now = na.clock.now();
  const ours = agreementBetween(alpha, beta, now, {}, [alpha.key]);
  const theirs = agreementBetween(alpha, beta, now, {}, [beta.key]);
  const both = agreementBetween(alpha, beta, now);
  const [a, b] = [[alpha.key.publicKey], [beta.key.publicKey]];
  for (const [name, body, reason] of [
    ['ours, no keys given', { agreement: ours }, 'accepted'],
    [
      'ours, null for keys',
      { agreement: ours, offerer_public_keys: null, responder_public_keys: null },
      'accepted',
    ],
    ['theirs, no keys given', { agreement: theirs }, 'invalid_offerer_signature'],
    [
      'theirs, their key for both',
      { agreement: theirs, offerer_public_keys: b, responder_public_keys: b },
      'accepted',
    ],
    [
      'ours, their key for the responder',
      { agreement: ours, responder_public_keys: b },
      'missing_responder_signature',
    ],
    [
      'ours, no key for the responder',
      { agreement: ours, responder_public_keys: [] },
      'missing_responder_signature',
    ],
    [
      'ours, no key for the offerer',
      { agreement: ours, offerer_public_keys: [] },
      'invalid_offerer_signature',
    ],
    [
      'both, their key for the responder',
      { agreement: both, responder_public_keys: b },
      'accepted',
    ],
    [
      'both, no key for the responder',
      { agreement: both, responder_public_keys: [] },
      'invalid_responder_signature',
    ],
    [
      'both, keys the wrong way round',
      { agreement: both, offerer_public_keys: b, responder_public_keys: a },
      'accepted',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      assert.equal((await post(na, VERIFY, body)).body.reason, reason);
    });
  }
});

test('the key lists of a verification are taken as they are', async (t) => {
  await using na = await startUnlimited();
  const [beta, gamma] = [
    sovereign('beta', misspellableKey()),
    sovereign('gamma', misspellableKey()),
  ];
  const agreement = agreementBetween(beta, gamma, na.clock.now());
  const right = {
    offerer_public_keys: [beta.key.publicKey],
    responder_public_keys: [gamma.key.publicKey],
  };
  for (const [member, key, failure] of [
    ['offerer_public_keys', beta.key, 'invalid_offerer_signature'],
    ['responder_public_keys', gamma.key, 'invalid_responder_signature'],
  ] as const) {
    for (const [name, keys, result] of keyListCases(key)) {
      await t.test(`${member}: ${name}`, async () => {
        const answer = await post(na, VERIFY, { agreement, ...right, [member]: keys });
        if (result === 'malformed') {
          assert.match(outcomeWithCause(answer), /^400 invalid_agreement (invalid|too_many)_keys$/);
        } else {
          assert.equal(answer.body.reason, result === 'verifies' ? 'accepted' : failure);
        }
      });
    }
  }
});

test('a signature that any weak key would verify proves nothing', async () => {
  await using na = await startUnlimited();
  const agreement = {
    ...agreementBetween(sovereign('beta'), sovereign('gamma'), na.clock.now()),
    signatures: [{ key_id: 'weak', sig: FORGED_SIGNATURE }],
  };
  for (const weak of WEAK_KEYS) {
    const keys = { offerer_public_keys: [weak], responder_public_keys: [weak] };
    const { body } = await post(na, VERIFY, { agreement, ...keys });
    assert.equal(body.reason, 'invalid_offerer_signature');
  }
});

test('what is no agreement is refused', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const agreement = agreementBetween(beta, gamma, now);
  const [signature] = signaturesOf(agreement);
  const long = agreementBetween(beta, gamma, now, {
    agreed_terms: agreedTerms(now, { capabilities: LONG_LIST }),
  });
  for (const [name, body, expected] of [
    ['nothing', {}, '400 missing_agreement missing_agreement'],
    ...MISSING.map(
      ([missing, value]) =>
        [missing, { agreement: value }, '400 missing_agreement missing_agreement'] as const,
    ),
    [
      'nothing, and a wrong key list',
      { offerer_public_keys: 5 },
      '400 missing_agreement missing_agreement',
    ],
    ['text', { agreement: 'text' }, '400 invalid_agreement invalid_agreement'],
    ['a list', { agreement: [agreement] }, '400 invalid_agreement invalid_agreement'],
    ['true', { agreement: true }, '400 invalid_agreement invalid_agreement'],
    ['a float', { agreement: new JsonFloat(1.5) }, '400 invalid_agreement invalid_agreement'],
    [
      '17 signatures',
      { agreement: { ...agreement, signatures: Array(17).fill(signature) } },
      '400 invalid_agreement invalid_agreement',
    ],
    ['4097 capabilities', { agreement: long }, '400 invalid_agreement invalid_agreement'],
    [
      'wrong, with a wrong key list',
      { agreement: {}, offerer_public_keys: 5 },
      '400 missing_agreement missing_agreement',
    ],
    [
      'of one member',
      { agreement: { a: 1 }, offerer_public_keys: 5 },
      '400 invalid_agreement invalid_agreement',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      assert.equal(outcomeWithCause(await post(na, VERIFY, body)), expected);
    });
  }
  for (const [name, expected, body] of AT_THE_PUBLIC_DOOR) {
    await t.test(name, async () => {
      assert.equal(outcome(await send(na, 'POST', VERIFY, { body })), expected);
    });
  }
});

/** Members no signature covers: anyone can change them, as long as they keep their type. */
const UNSIGNED = /^(agreement_id|established_at|expires_at|signatures\.\d+\.key_id)$/;

test('no signed member of an agreement can be changed without being noticed', async () => {
  await using na = await startUnlimited();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const agreement = agreementBetween(beta, gamma, na.clock.now());
  const keys = {
    offerer_public_keys: [beta.key.publicKey],
    responder_public_keys: [gamma.key.publicKey],
  };
  assert.equal((await post(na, VERIFY, { agreement, ...keys })).body.accepted, true);
  await eachOf(mutationsOf(agreement), async ({ name, path, record }) => {
    const answer = await post(na, VERIFY, { agreement: record, ...keys });
    if (answer.status === 200) {
      assert.equal(answer.body.accepted, UNSIGNED.test(path), name);
    } else {
      assert.equal(outcomeWithCause(answer), '400 invalid_agreement invalid_agreement', name);
    }
  });
});

test('verifying writes only to the log', async () => {
  await using na = await startUnlimited();
  const agreement = agreementBetween(ourselves(na), sovereign('beta'), na.clock.now());
  await na.flush();
  const before = await stateDigest(na);
  await post(na, VERIFY, { agreement });
  await post(na, VERIFY, { agreement, offerer_public_keys: [], responder_public_keys: [] });
  await post(na, VERIFY, { agreement: 'text' });
  await na.flush();
  assert.equal(await stateDigest(na), before);
  const events = audited(na, 'agreement_verified');
  assert.deepEqual(
    events.map(({ agreement_id, accepted }) => [agreement_id, accepted]),
    [
      [agreement.agreement_id, true],
      [agreement.agreement_id, false],
    ],
  );
});

test('answers of the agreement routes are read back as they were written', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const request = offerRequest(now, { scope: { rate: new JsonFloat(1), place: 'Zürich' } });
  const answer = await operate(na, OFFER, request);
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
  assert.match(answer.text, /"rate":1\.0/);
  const offer = parsed(answer);
  const counter = await created(operate(na, COUNTER, termsRequest(now, { offer })));
  const agreement = await created(operate(na, ACCEPT, { counter, original_offer: offer }));
  assert.match(canonicalJson(agreement), /"offerer_evidence"/);
  assert.equal(
    canonicalJson(inner(agreement, 'offerer_evidence')),
    canonicalJson(inner(offer, 'offerer_evidence')),
  );
});

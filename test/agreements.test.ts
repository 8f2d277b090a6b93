/**
 * Agreements over HTTP: offer, counter, accept, verify [trust-2-3] to [trust-2-5], [trust-4-2],
 * [trust-4-3], [trust-5-1] to [trust-5-3], [trust-6-1].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  ACCEPT,
  assertOwnEvidence,
  COUNTER,
  graphDigest,
  LONG_LIST,
  OFFER,
  offerRequest,
  parties,
  termsRequest,
  VERIFY,
} from './support/agreements.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { valuesExcept, WRONG_TIMESTAMPS } from './support/hostile.ts';
import {
  auditEvents,
  get,
  operate,
  operatorRequest,
  outcome,
  sendSigned,
} from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { checkChanges, checkTable, inEach } from './support/tables.ts';
import { audited, post, startUnlimited, UUID, verifies } from './support/trust.ts';
import {
  agreedTerms,
  agreementSigners,
  answersTo,
  type Change,
  created,
  drop,
  inner,
  MISSING,
  offerBetween,
  outcomeWithCause,
  set,
  signaturesOf,
} from './support/trust-protocol.ts';

const shared = sharedAuthority();

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
  await assertOwnEvidence(na, offerer_evidence as JsonObject, 'allow');
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

test('offers can be made to strangers and to oneself: the evidence inside blocks', async (t) => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  for (const responder of ['stranger', 'alpha', 'Beta', ' beta']) {
    await t.test(responder, async () => {
      const request = offerRequest(now, { responder_sovereign_id: responder });
      const offer = await created(operate(na, OFFER, request));
      await assertOwnEvidence(na, inner(offer, 'offerer_evidence'), 'block', 'alpha', responder);
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

test('scope is preserved exactly: number tokens, non-ASCII text, member names of any kind', async () => {
  const na = await shared();
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
  // The parser must keep this name too; in a literal it would set the prototype.
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

test('an empty scope of any kind becomes an empty object', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  for (const change of [drop('scope'), ...MISSING.map(([, scope]) => set({ scope }))]) {
    const made = await created(operate(na, OFFER, change(offerRequest(now))));
    assert.deepEqual(inner(made, 'requested_terms').scope, {});
    const counter = await created(operate(na, COUNTER, change(termsRequest(now, { offer }))));
    assert.deepEqual(inner(counter, 'agreed_terms').scope, {});
  }
});

/** Neither the window nor the expiry has to be in the future [trust-t20]. */
test('an offer may lie entirely in the past, and then cannot be accepted', async () => {
  const na = await shared();
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

test('timestamps of an offer are converted to UTC, not just relabeled', async () => {
  const na = await shared();
  const now = na.clock.now();
  for (const [given, stored] of READABLE) {
    const until = { valid_from: '0001-01-01T00:00:00Z', valid_until: given, expires_at: given };
    const from = { valid_from: given, valid_until: '9999-12-31T23:59:59Z' };
    const isFirst = stored.startsWith('0001');
    const offer = await created(operate(na, OFFER, offerRequest(now, isFirst ? from : until)));
    const terms = inner(offer, 'requested_terms');
    assert.equal(isFirst ? terms.valid_from : terms.valid_until, stored);
    if (!isFirst) assert.equal(offer.expires_at, stored);
    assert.ok(verifies(offer, na.audience));
  }
});

test('invalid timestamps are refused with the code of their route', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  for (const member of ['valid_from', 'valid_until', 'expires_at']) {
    const expected = `400 invalid_timestamps invalid_${member}`;
    const table = { [expected]: inEach(member, UNREADABLE) };
    await checkTable(table, answersTo(na, OFFER, offerRequest(now)));
  }
  for (const member of ['valid_from', 'valid_until']) {
    const expected = `400 missing_counter_fields invalid_${member}`;
    const table = { [expected]: inEach(member, UNREADABLE) };
    await checkTable(table, answersTo(na, COUNTER, termsRequest(now, { offer })));
  }
});

test('a window must end after it begins', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  const window = (valid_from: string, valid_until: string) => ({ valid_from, valid_until });
  const first = '2030-01-01T00:00:00Z';
  const inOrder = {
    'a microsecond after': window(first, '2030-01-01T00:00:00.000001Z'),
    'by text before, by time after': window('2030-01-01T02:00:00+02:00', '2030-01-01T01:00:00Z'),
    'centuries after': window('0001-01-01', '9999-12-31'),
  };
  const outOfOrder = {
    'at once': window(first, first),
    'at once in another offset': window(first, '2030-01-01T02:00:00+02:00'),
    'a microsecond before': window('2030-01-01T00:00:00.000001Z', first),
    'by text after, by time before': window(first, '2030-01-01T01:00:00+02:00'),
  };
  await checkTable<JsonObject>(
    { 201: inOrder, '400 invalid_timestamps timestamp_order': outOfOrder },
    answersTo(na, OFFER, offerRequest(now)),
  );
  await checkTable<JsonObject>(
    { 201: inOrder, '400 missing_counter_fields timestamp_order': outOfOrder },
    answersTo(na, COUNTER, termsRequest(now, { offer })),
  );
});

// What is wrong with a request, in the order of the checks

type Faults = readonly (readonly [expected: string, change: Change])[];

const OUT_OF_ORDER = set({ valid_from: '2030-01-02', valid_until: '2030-01-01' });

const OFFER_FAULTS: Faults = [
  ['400 missing_offer_fields missing_responder_sovereign_id', drop('responder_sovereign_id')],
  ['400 missing_offer_fields invalid_capabilities', drop('capabilities')],
  ['400 invalid_timestamps invalid_valid_from', drop('valid_from')],
  ['400 invalid_timestamps invalid_valid_until', drop('valid_until')],
  ['400 invalid_timestamps timestamp_order', OUT_OF_ORDER],
  ['400 invalid_timestamps invalid_expires_at', drop('expires_at')],
  ['422 offer_rejected invalid_scope', set({ scope: ['eu'] })],
];

const COUNTER_FAULTS: Faults = [
  ['400 missing_counter_fields missing_offer', drop('offer')],
  ['400 missing_counter_fields invalid_capabilities', drop('capabilities')],
  ['400 invalid_offer invalid_offer', alteredOffer(drop('graph_digest'))],
  ['400 missing_counter_fields invalid_valid_from', drop('valid_from')],
  ['400 missing_counter_fields invalid_valid_until', drop('valid_until')],
  ['400 missing_counter_fields timestamp_order', OUT_OF_ORDER],
  ['422 counter_rejected invalid_scope', set({ scope: ['eu'] })],
  ['422 counter_rejected capabilities_not_offered', set({ capabilities: ['read', 'delete'] })],
  [
    '422 counter_rejected invalid_offer_signature',
    alteredOffer(set({ created_at: '2026-01-01T00:00:00Z' })),
  ],
];

/** Changes the offer inside a body; leaves a body without one unchanged. */
function alteredOffer(change: Change): Change {
  return (body) =>
    body.offer === undefined ? body : { ...body, offer: change(inner(body, 'offer')) };
}

test('an offer and a counter report the first fault', async () => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  await checkChanges(OFFER_FAULTS, offerRequest(now), answersTo(na, OFFER));
  await checkChanges(COUNTER_FAULTS, termsRequest(now, { offer }), answersTo(na, COUNTER));
  assert.deepEqual(audited(na, 'capability_offer_built'), []);
  assert.deepEqual(audited(na, 'capability_counter_built'), []);
});

test('each member of an offer or a counter has a type, and some may not be empty', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const capabilities = [...LONG_LIST.slice(1), 'read', 'write'].slice(-4096);
  const requested_terms = agreedTerms(now, { capabilities });
  const offer = offerBetween(beta, alpha, now, { requested_terms });
  const given = valuesExcept(
    'null',
    'false',
    'an empty string',
    'an empty list',
    'an empty object',
  );
  const except = (taken: string) => given.filter(([name]) => name !== taken);
  const noList = inEach('capabilities', [...valuesExcept('a list'), ['4097', LONG_LIST]]);
  const noTexts = inEach('capabilities', [
    ['with a number', ['read', 5]],
    ['with null', ['read', null]],
    ['with an empty string', ['read', '']],
    ['with a list', [['read']]],
    ['with an object', [{ read: true }]],
  ]);
  const responder = 'responder_sovereign_id';
  await checkTable<JsonObject>(
    {
      [`400 missing_offer_fields missing_${responder}`]: inEach(responder, MISSING),
      [`422 offer_rejected invalid_${responder}`]: inEach(responder, except('a string')),
      '400 missing_offer_fields invalid_capabilities': noList,
      '422 offer_rejected invalid_capabilities': noTexts,
      '422 offer_rejected invalid_scope': inEach('scope', except('an object')),
    },
    answersTo(na, OFFER, offerRequest(now)),
  );
  await checkTable<JsonObject>(
    {
      '400 missing_counter_fields missing_offer': inEach('offer', MISSING),
      '400 invalid_offer invalid_offer': inEach('offer', given),
      '400 missing_counter_fields invalid_capabilities': noList,
      '422 counter_rejected invalid_capabilities': noTexts,
      '422 counter_rejected invalid_scope': inEach('scope', except('an object')),
    },
    answersTo(na, COUNTER, termsRequest(now, { offer })),
  );
  for (const [path, body, member] of [
    [OFFER, offerRequest(now), 'requested_terms'],
    [COUNTER, termsRequest(now, { offer }), 'agreed_terms'],
  ] as const) {
    const record = await created(operate(na, path, { ...body, capabilities }));
    assert.deepEqual(inner(record, member).capabilities, capabilities, '4096 are accepted');
  }
});

test('members that requests do not have are ignored', async () => {
  const na = await shared();
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
  await assertOwnEvidence(na, responder_evidence as JsonObject, 'allow');
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

test('the capabilities of a counter must be a subset of those offered, regardless of order', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const requested_terms = agreedTerms(now, { capabilities: ['read', 'write', 'data:*'] });
  const offer = offerBetween(beta, alpha, now, { requested_terms });
  const named = (...lists: readonly string[][]) =>
    inEach(
      'capabilities',
      lists.map((list) => [list.join(), list] as const),
    );
  await checkTable(
    {
      201: named(['read'], ['write', 'read', 'data:*'], Array(4).fill('read'), ['data:*']),
      '422 counter_rejected capabilities_not_offered': named(
        ...[['data:x'], ['*'], ['Read'], ['read '], ['read', 'delete'], ['constructor']],
      ),
    },
    answersTo(na, COUNTER, termsRequest(now, { offer })),
  );
});

// The front door

test('a refused request spends its nonce and changes nothing else', async () => {
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

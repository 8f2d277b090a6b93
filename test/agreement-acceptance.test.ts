/** Acceptance of offers and counters [trust-2-5], [trust-4-2], [trust-4-3], [trust-5-3]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  ACCEPT,
  assertOwnEvidence,
  COUNTER,
  OFFER,
  offerRequest,
  parties,
  termsRequest,
  VERIFY,
} from './support/agreements.ts';
import { HOUR } from './support/clock.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { audited, post, startUnlimited, UUID } from './support/trust.ts';
import {
  agreedTerms,
  agreementSigners,
  combinationsOf,
  counterTo,
  created,
  eachOf,
  evidence,
  inner,
  mutationsOf,
  offerBetween,
  outcomeWithCause,
  resigned,
  signaturesOf,
  signedAgreement,
  without,
} from './support/trust-protocol.ts';

// Acceptance

test('accepting an offer of a recognized sovereign creates an agreement with our signature', async () => {
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
  await assertOwnEvidence(na, responder_evidence as JsonObject, 'allow');
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

test('our own offer can be accepted and countered here, even if the evidence of the other side blocks', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const offer = await created(operate(na, OFFER, offerRequest(now)));
  const direct = await created(operate(na, ACCEPT, { offer }));
  const counter = await created(operate(na, COUNTER, termsRequest(now, { offer })));
  const countered = await created(operate(na, ACCEPT, { counter, original_offer: offer }));
  for (const record of [direct, counter]) {
    await assertOwnEvidence(na, inner(record, 'responder_evidence'), 'block', 'beta', 'alpha');
  }
  assert.deepEqual(agreementSigners(direct, na.audience), [na.audience]);
  assert.deepEqual(agreementSigners(countered, na.audience), [na.audience, na.audience]);
  for (const agreement of [direct, countered]) {
    const answer = await post(na, VERIFY, { agreement });
    assert.deepEqual([answer.body.accepted, answer.body.reason], [true, 'accepted']);
  }
});

test('accepting a counter creates an agreement with both signatures, the responder’s first', async () => {
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

test('the members of an acceptance decide which kind it is', async (t) => {
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
      'null for the counter, with a good offer next to it',
      { offer: other, counter: null, original_offer: offer },
      '422 accept_rejected invalid_counter',
      null,
    ],
    [
      'null for the original offer, with a good offer next to it',
      { offer: other, counter, original_offer: null },
      '422 accept_rejected invalid_offer',
      null,
    ],
    [
      'null for both, with a good offer next to them',
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

// Whether a counter can be accepted [trust-4-3]

/** In the order of the checks; each case changes the offer or the counter. */
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

test('a counter must match the offer and its signature in every member', async (t) => {
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

test('nothing else of a counter is checked', async (t) => {
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

test('an agreement never gets more signatures than a reader accepts', async () => {
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

/** For members that are kept verbatim, one change stands for all; the test of the public route makes all of them. */
const VERBATIM = /_evidence\.(?!verdict)/;

test('no member of an offer or counter can be changed unnoticed', async () => {
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

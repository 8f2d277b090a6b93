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
import { sharedAuthority } from './support/shared-authority.ts';
import { checkTable } from './support/tables.ts';
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

const shared = sharedAuthority();

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

test('the members of an acceptance decide which kind it is', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const original_offer = offerBetween(alpha, beta, now);
  const counter = counterTo(original_offer, beta, now);
  const offer = offerBetween(beta, alpha, now);
  await checkTable<JsonObject>(
    {
      'from beta to alpha': {
        'an offer': { offer },
        'an offer and a counter': { offer, counter },
        'an offer and an original offer': { offer, original_offer },
      },
      'from alpha to beta': {
        'a counter and its offer': { counter, original_offer },
        'all three: the counter wins': { offer, counter, original_offer },
      },
      '400 missing_accept_fields missing_offer': {
        nothing: {},
        'a counter alone': { counter },
        'an original offer alone': { original_offer },
      },
      '422 accept_rejected invalid_offer': {
        'null for the offer': { offer: null },
        '{} for the offer': { offer: {} },
        'false for the offer': { offer: false },
        'text for the offer': { offer: 'text' },
        'a list for the offer': { offer: [offer] },
        'a counter for the offer': { offer: counter },
        // With a good offer next to it.
        'null for the original offer': { offer, counter, original_offer: null },
      },
      '422 accept_rejected invalid_counter': {
        'null for the counter': { offer, counter: null, original_offer },
        'null for both': { offer, counter: null, original_offer: null },
      },
    },
    async (body) => {
      const answer = await operate(na, ACCEPT, body);
      if (answer.status !== 201) return outcomeWithCause(answer);
      const { offerer_sovereign_id, responder_sovereign_id } = answer.body;
      return `from ${offerer_sovereign_id} to ${responder_sovereign_id}`;
    },
  );
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

test('a counter that cannot be accepted is refused, and the first reason is reported', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const before = audited(na, 'agreement_accepted').length;
  const causes = Object.keys(UNACCEPTABLE) as (keyof typeof UNACCEPTABLE)[];
  for (const { first, names } of combinationsOf(causes)) {
    const isOurs = !names.includes('not_the_offerer');
    const [offerer, responder] = isOurs ? [alpha, beta] : [beta, alpha];
    const offer = offerBetween(offerer, responder, now);
    const changes: JsonObject = Object.assign({}, ...names.map((name) => UNACCEPTABLE[name]));
    const agreed_terms = agreedTerms(now, (changes.agreed_terms ?? {}) as JsonObject);
    const counter = counterTo(offer, responder, now, { ...changes, agreed_terms });
    const isForged = names.includes('invalid_counter_signature');
    const sent = isForged ? signedAgreement(counter, newKey()) : counter;
    const answer = await operate(na, ACCEPT, { counter: sent, original_offer: offer });
    assert.equal(outcomeWithCause(answer), `422 accept_rejected ${first}`, names.join());
  }
  assert.equal(audited(na, 'agreement_accepted').length, before);
});

test('a counter must match the offer and its signature in every member', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(alpha, beta, now);
  const counter = counterTo(offer, beta, now);
  const made = (changes: JsonObject) => counterTo(offer, beta, now, changes);
  const altered = (changes: JsonObject) => ({ ...counter, ...changes });
  const metadata = { weight: 1, kept: ['\u00e9'] };
  const respelt = { ...inner(offer, 'offerer_evidence'), metadata };
  const later = evidence(alpha, beta, now);
  const swapped = { offerer_sovereign_id: 'beta', responder_sovereign_id: 'alpha' };
  await checkTable<JsonObject>(
    {
      '422 accept_rejected counter_differs_from_offer': {
        'another offerer': made({ offerer_sovereign_id: 'gamma' }),
        'another responder': made({ responder_sovereign_id: 'gamma' }),
        'parties changed round': made(swapped),
        'other evidence of the offerer': made({ offerer_evidence: later }),
        'evidence with 1 for 1.0': made({ offerer_evidence: respelt }),
        'evidence changed after signing': altered({ offerer_evidence: later }),
      },
      '422 accept_rejected invalid_counter_signature': {
        'terms changed after signing': altered({
          agreed_terms: agreedTerms(now, { capabilities: ['write'] }),
        }),
        'scope changed after signing': altered({
          agreed_terms: { ...inner(counter, 'agreed_terms'), scope: {} },
        }),
        'evidence of the responder changed after signing': altered({ responder_evidence: later }),
        'no signature': altered({ signatures: [] }),
        'the signature of a stranger': signedAgreement(counter, newKey()),
        'a signature over the whole record': resigned(counter, beta.key),
        'the signature of the offer': altered({ signatures: offer.signatures ?? null }),
      },
      '422 accept_rejected counter_expired': {
        'expired a microsecond ago': altered({ expires_at: formatInstant(now - 0.001) }),
      },
      '422 accept_rejected invalid_counter': {
        'no terms': without(counter, 'agreed_terms'),
        'no evidence of the responder': without(counter, 'responder_evidence'),
        '17 signatures': altered({ signatures: Array(17).fill(signaturesOf(counter)[0]) }),
        'text for a signature': altered({ signatures: ['text'] }),
      },
    },
    async (given) =>
      outcomeWithCause(await operate(na, ACCEPT, { counter: given, original_offer: offer })),
  );
});

test('nothing else of a counter is checked', async () => {
  const na = await shared();
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
    const answer = operate(na, ACCEPT, { counter: given, original_offer: offer });
    const agreement = await created(answer);
    const terms = inner(given, 'agreed_terms');
    assert.equal(canonicalJson(inner(agreement, 'agreed_terms')), canonicalJson(terms), name);
    assert.equal(agreement.expires_at, terms.valid_until, name);
    assert.equal(agreementSigners(agreement, na.audience).at(-1), na.audience, name);
    assert.deepEqual(signaturesOf(agreement).slice(0, -1), signaturesOf(given), name);
  }
});

test('an agreement never gets more signatures than a reader accepts', async () => {
  const na = await shared();
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

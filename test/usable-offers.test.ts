/** Whether an offer is usable, in each of the three ways to use it [trust-4-2]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { ACCEPT, COUNTER, LONG_LIST, parties, termsRequest } from './support/agreements.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { newKey, operate } from './support/requests.ts';
import { audited, revokeTreaty, sovereign, startUnlimited } from './support/trust.ts';
import {
  agreedTerms,
  agreementSigners,
  counterTo,
  created,
  evidence,
  offerBetween,
  ourselves,
  outcomeWithCause,
  type Party,
  recognized,
  resigned,
  signaturesOf,
  signedAgreement,
  without,
} from './support/trust-protocol.ts';

/** Offers that cannot be used, with the cause. */
function unusable(alpha: Party, beta: Party, now: number): [string, string, JsonObject][] {
  const gamma = sovereign('gamma');
  const theirs = offerBetween(beta, alpha, now);
  const given = (members: JsonObject) => offerBetween(beta, alpha, now, members);
  const expires_at = formatInstant(now - SECOND);
  const blocks = { offerer_evidence: { verdict: 'block' } };
  const blocking = evidence(beta, alpha, now, { verdict: 'block' });
  const wider = agreedTerms(now, { capabilities: ['read', 'write', 'admin'] });
  const longer = formatInstant(now + HOUR);
  const unsigned = { signatures: [] };
  const forged = 'invalid_offer_signature';
  return [
    ['between two others', 'not_a_party', offerBetween(beta, gamma, now)],
    ['of a sovereign that is not recognized', forged, offerBetween(gamma, alpha, now)],
    ['without signature', forged, { ...theirs, ...unsigned }],
    ['without signatures', forged, without(theirs, 'signatures')],
    ['signed by a stranger', forged, resigned(theirs, newKey())],
    ['of the peer, signed by us', forged, resigned(theirs, alpha.key)],
    ['of ours, signed by the peer', forged, resigned(offerBetween(alpha, beta, now), beta.key)],
    ['with wider terms than were signed', forged, { ...theirs, requested_terms: wider }],
    [
      'with evidence from another offer',
      forged,
      { ...theirs, offerer_evidence: evidence(beta, alpha, now) },
    ],
    ['prolonged', forged, { ...theirs, expires_at: longer }],
    ['with another id', forged, { ...theirs, offer_id: 'other' }],
    ['without an id, which each reader makes up', forged, without(theirs, 'offer_id')],
    ['expired a millisecond ago', 'offer_expired', given({ expires_at: formatInstant(now - 1) })],
    [
      'expired a microsecond ago',
      'offer_expired',
      given({ expires_at: formatInstant(now - 0.001) }),
    ],
    ['whose evidence blocks', 'offerer_evidence_blocks', given({ offerer_evidence: blocking })],
    ['whose bare evidence blocks', 'offerer_evidence_blocks', given(blocks)],
    // What is reported first.
    ['expired and blocking', 'offer_expired', given({ expires_at, ...blocks })],
    [
      'expired, blocking and badly signed',
      forged,
      resigned(given({ expires_at, ...blocks }), newKey()),
    ],
    [
      'between two others, unsigned, expired and blocking',
      'not_a_party',
      { ...offerBetween(beta, gamma, now, { expires_at, ...blocks }), ...unsigned },
    ],
  ];
}

test('an unusable offer can be neither countered nor accepted, in any way', async () => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  for (const [name, cause, offer] of unusable(alpha, beta, now)) {
    const countered = await operate(na, COUNTER, termsRequest(now, { offer }));
    assert.equal(outcomeWithCause(countered), `422 counter_rejected ${cause}`, name);
    const accepted = await operate(na, ACCEPT, { offer });
    assert.equal(outcomeWithCause(accepted), `422 accept_rejected ${cause}`, name);
    const counter = counterTo({ offer_id: 'made up', ...offer }, beta, now);
    const finalized = await operate(na, ACCEPT, { counter, original_offer: offer });
    assert.equal(outcomeWithCause(finalized), `422 accept_rejected ${cause}`, name);
  }
  assert.deepEqual(audited(na, 'agreement_accepted'), []);
  assert.deepEqual(audited(na, 'capability_counter_built'), []);
});

test('nothing else of an offer is checked', async (t) => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  const given = (members: JsonObject) => offerBetween(beta, alpha, now, members);
  const [signature] = signaturesOf(offer);
  const many = Array.from({ length: 15 }, () => signaturesOf(given({}))[0] as JsonObject);
  const past = { valid_from: '2020-01-01T00:00:00Z', valid_until: '2020-01-02T00:00:00Z' };
  const spelt = { ...offer, expires_at: String(offer.expires_at).replace('Z', '+00:00') };
  const reversed = Object.fromEntries(Object.entries(spelt).reverse());
  for (const [name, usable] of [
    ['that expires now', given({ expires_at: formatInstant(now) })],
    ['whose second signature is right', resigned(given({}), newKey(), beta.key)],
    [
      'whose sixteenth signature is right',
      { ...offer, signatures: [...many, ...signaturesOf(offer)] },
    ],
    ['whose signature is labeled wrong', { ...offer, signatures: [{ ...signature, key_id: '' }] }],
    ['with members nobody knows', { ...offer, status: 'open', issued_by: 'x' }],
    ['with empty evidence', given({ offerer_evidence: {} })],
    ['with evidence of escalation', given({ offerer_evidence: { verdict: 'escalate' } })],
    ['with evidence in capitals', given({ offerer_evidence: { verdict: 'BLOCK' } })],
    ['with a verdict that is a number', given({ offerer_evidence: { verdict: 5 } })],
    ['with a graph digest of any kind', given({ graph_digest: '' })],
    ['with a window in the past', given({ requested_terms: agreedTerms(now, past) })],
    ['in another order and with an offset spelt out', reversed],
  ] as [string, JsonObject][]) {
    await t.test(name, async () => {
      await created(
        operate(na, COUNTER, termsRequest(now, { offer: usable, capabilities: ['read'] })),
      );
      const agreement = await created(operate(na, ACCEPT, { offer: usable }));
      assert.deepEqual(agreementSigners(agreement, na.audience), [na.audience]);
    });
  }
});

test('an offer with a missing or wrong member is not an offer', async () => {
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
    const countered = await operate(na, COUNTER, termsRequest(now, { offer: given }));
    assert.equal(outcomeWithCause(countered), '400 invalid_offer invalid_offer', name);
    const accepted = await operate(na, ACCEPT, { offer: given });
    assert.equal(outcomeWithCause(accepted), '422 accept_rejected invalid_offer', name);
  }
});

test('only our own treaties in force say which keys a peer signs with', async (t) => {
  const others = [newKey().publicKey];
  const lasting = { validity_hours: 1 };
  const ofGamma = { issuer_sovereign_id: 'gamma' };
  for (const [name, expected, arrange] of [
    ['our treaty', 'usable', (na, beta) => recognized(na, beta)],
    [
      'our treaty with several keys',
      'usable',
      (na, beta) => recognized(na, beta, { subject_public_keys: [...others, beta.key.publicKey] }),
    ],
    [
      'the second of our treaties',
      'usable',
      async (na, beta) => {
        await recognized(na, beta, { subject_public_keys: others });
        await recognized(na, beta);
      },
    ],
    [
      'our treaty in its last whole second',
      'usable',
      async (na, beta) => {
        await recognized(na, beta, lasting);
        na.clock.advance(HOUR - SECOND);
      },
    ],
    [
      'our treaty that has just expired',
      'unusable',
      async (na, beta) => {
        await recognized(na, beta, lasting);
        na.clock.advance(HOUR);
      },
    ],
    [
      'our treaty that is revoked',
      'unusable',
      async (na, beta) => revokeTreaty(na, (await recognized(na, beta)).treaty_id),
    ],
    ['the treaty of another', 'unusable', (na, beta) => recognized(na, beta, ofGamma)],
    [
      'the treaty of a sovereign we recognize',
      'unusable',
      async (na, beta) => {
        await recognized(na, sovereign('gamma'));
        await recognized(na, beta, ofGamma);
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

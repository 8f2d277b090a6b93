/** Whether an offer is usable, in each of the three ways to use it [trust-4-2]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { ACCEPT, COUNTER, LONG_LIST, parties, termsRequest } from './support/agreements.ts';
import { sharedAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { newKey, operate } from './support/requests.ts';
import { checkTable, type Table } from './support/tables.ts';
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

const shared = sharedAuthority();

test('an unusable offer can be neither countered nor accepted, in any way', async () => {
  await using na = await startUnlimited();
  const { alpha, beta, now } = await parties(na);
  const gamma = sovereign('gamma');
  const made = (changes: JsonObject = {}) => offerBetween(beta, alpha, now, changes);
  const altered = (changes: JsonObject) => ({ ...made(), ...changes });
  const blocking = { offerer_evidence: { verdict: 'block' } };
  const overAndBlocking = { expires_at: formatInstant(now - SECOND), ...blocking };
  const wider = agreedTerms(now, { capabilities: ['read', 'write', 'admin'] });
  const unusable: Table = {
    not_a_party: {
      'between two others': offerBetween(beta, gamma, now),
      // The parties are reported first.
      'between two others, unsigned, expired and blocking': {
        ...offerBetween(beta, gamma, now, overAndBlocking),
        signatures: [],
      },
    },
    invalid_offer_signature: {
      'of a sovereign that is not recognized': offerBetween(gamma, alpha, now),
      'without signature': altered({ signatures: [] }),
      'without signatures': without(made(), 'signatures'),
      'signed by a stranger': resigned(made(), newKey()),
      'of the peer, signed by us': resigned(made(), alpha.key),
      'of ours, signed by the peer': resigned(offerBetween(alpha, beta, now), beta.key),
      'with wider terms than were signed': altered({ requested_terms: wider }),
      'with evidence from another offer': altered({
        offerer_evidence: evidence(beta, alpha, now),
      }),
      prolonged: altered({ expires_at: formatInstant(now + HOUR) }),
      'with another id': altered({ offer_id: 'other' }),
      'without an id, which each reader makes up': without(made(), 'offer_id'),
      // The signature is reported first.
      'expired and badly signed': resigned(made(overAndBlocking), newKey()),
    },
    offer_expired: {
      'expired a millisecond ago': made({ expires_at: formatInstant(now - 1) }),
      'expired a microsecond ago': made({ expires_at: formatInstant(now - 0.001) }),
      // Expiry is reported first.
      'expired and blocking': made(overAndBlocking),
    },
    offerer_evidence_blocks: {
      'whose evidence blocks': made({
        offerer_evidence: evidence(beta, alpha, now, { verdict: 'block' }),
      }),
      'whose bare evidence blocks': made(blocking),
    },
  };
  await checkTable(unusable, async (offer) => {
    const counter = counterTo({ offer_id: 'made up', ...offer }, beta, now);
    const answers = [
      await operate(na, COUNTER, termsRequest(now, { offer })),
      await operate(na, ACCEPT, { offer }),
      await operate(na, ACCEPT, { counter, original_offer: offer }),
    ].map(outcomeWithCause);
    const [cause = ''] = answers[0]?.split(' ').slice(2) ?? [];
    const codes = ['counter_rejected', 'accept_rejected', 'accept_rejected'];
    assert.deepEqual(
      answers,
      codes.map((code) => `422 ${code} ${cause}`),
    );
    return cause;
  });
  assert.deepEqual(audited(na, 'agreement_accepted'), []);
  assert.deepEqual(audited(na, 'capability_counter_built'), []);
});

test('nothing else of an offer is checked', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const made = (changes: JsonObject = {}) => offerBetween(beta, alpha, now, changes);
  const offer = made();
  const altered = (changes: JsonObject) => ({ ...offer, ...changes });
  const [signature = null] = signaturesOf(made());
  const [own] = signaturesOf(offer);
  const past = { valid_from: '2020-01-01T00:00:00Z', valid_until: '2020-01-02T00:00:00Z' };
  const respelled = altered({ expires_at: String(offer.expires_at).replace('Z', '+00:00') });
  for (const [name, given] of Object.entries({
    'that expires now': made({ expires_at: formatInstant(now) }),
    'whose second signature is right': resigned(offer, newKey(), beta.key),
    'whose sixteenth signature is right': altered({
      signatures: [...Array(15).fill(signature), ...signaturesOf(offer)],
    }),
    'whose signature is labeled wrong': altered({ signatures: [{ ...own, key_id: '' }] }),
    'with members nobody knows': altered({ status: 'open', issued_by: 'x' }),
    'with empty evidence': made({ offerer_evidence: {} }),
    'with evidence of escalation': made({ offerer_evidence: { verdict: 'escalate' } }),
    'with evidence in capitals': made({ offerer_evidence: { verdict: 'BLOCK' } }),
    'with a verdict that is a number': made({ offerer_evidence: { verdict: 5 } }),
    'with a graph digest of any kind': made({ graph_digest: '' }),
    'with a window in the past': made({ requested_terms: agreedTerms(now, past) }),
    'in another order and with an offset spelt out': Object.fromEntries(
      Object.entries(respelled).reverse(),
    ),
  })) {
    const countered = { offer: given, capabilities: ['read'] };
    assert.equal(
      outcomeWithCause(await operate(na, COUNTER, termsRequest(now, countered))),
      '201',
      name,
    );
    const agreement = await created(operate(na, ACCEPT, { offer: given }));
    assert.deepEqual(agreementSigners(agreement, na.audience), [na.audience], name);
  }
});

test('an offer with a missing or wrong member is not an offer', async () => {
  const na = await shared();
  const { alpha, beta, now } = await parties(na);
  const offer = offerBetween(beta, alpha, now);
  const [signature] = signaturesOf(offer);
  const altered = (changes: JsonObject) => ({ ...offer, ...changes });
  const terms = (changes: JsonObject) => altered({ requested_terms: agreedTerms(now, changes) });
  for (const [name, given] of Object.entries({
    ...Object.fromEntries(REQUIRED.map((member) => [`no ${member}`, without(offer, member)])),
    '17 signatures': altered({ signatures: Array(17).fill(signature) }),
    '4097 capabilities': terms({ capabilities: LONG_LIST }),
    'null for a list with a default': terms({ capabilities: null }),
    'a datetime without offset': altered({ expires_at: '2030-01-01T00:00:00' }),
    'a datetime that is a number': altered({ expires_at: 1_893_456_000 }),
    'a negative freshness': terms({ freshness_commitment: -1 }),
    'a freshness beyond safe integers': terms({ freshness_commitment: 2n ** 60n }),
    'a list for evidence': altered({ offerer_evidence: [] }),
    'a float for evidence': altered({ offerer_evidence: new JsonFloat(1) }),
    'a signature without its label': altered({ signatures: [{ sig: signature?.sig ?? '' }] }),
  })) {
    const countered = await operate(na, COUNTER, termsRequest(now, { offer: given }));
    assert.equal(outcomeWithCause(countered), '400 invalid_offer invalid_offer', name);
    const accepted = await operate(na, ACCEPT, { offer: given });
    assert.equal(outcomeWithCause(accepted), '422 accept_rejected invalid_offer', name);
  }
});

const REQUIRED = [
  ...['offerer_sovereign_id', 'responder_sovereign_id', 'requested_terms'],
  ...['graph_digest', 'offerer_evidence', 'expires_at'],
];

test('only our own treaties in force say which keys a peer signs with', async () => {
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
      name,
    );
    await created(operate(na, ACCEPT, { offer: ours }));
    const own = signedAgreement(counter, alpha.key);
    await created(operate(na, ACCEPT, { counter: own, original_offer: ours }));
  }
});

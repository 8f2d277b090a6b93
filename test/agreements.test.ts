/**
 * Agreements: offer, counter, accept [trust-2-3] to [trust-2-5], [trust-4-2], [trust-4-3], [trust-5-1] to [trust-5-3].
 * `trust-commands.test.ts` has what all commands share.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyAgreement } from '../src/protocol/api/verifications.ts';
import {
  ACCEPT,
  assertOwnEvidence,
  COUNTER,
  LONG_LIST,
  OFFER,
  offerRequest,
  parties,
  termsRequest,
  VERIFY,
} from './support/agreements.ts';
import { sharedAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { newKey, operate } from './support/requests.ts';
import { checkTable, inEach } from './support/tables.ts';
import { parsed, post, sovereign, startUnlimited, UUID, verifies } from './support/trust.ts';
import { outcomeOf, outcomesOf, recordOf } from './support/trust-commands.ts';
import {
  agreedTerms,
  agreementBetween,
  agreementSigners,
  combinationsOf,
  counterTo,
  created,
  drop,
  evidence,
  inner,
  MISSING,
  offerBetween,
  resigned,
  set,
  signaturesOf,
  signedAgreement,
  without,
} from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, resultOf, us, verdictOf } from './support/verifications.ts';

const shared = sharedAuthority();

const beta = sovereign('beta');
const KNOWING = { partners: [beta] };
const theirs = offerBetween(beta, us, NOW);
const ours = offerBetween(us, beta, NOW);
const counter = counterTo(ours, beta, NOW);

// Offers

test('offers can be made to strangers and to oneself: the evidence inside blocks', () => {
  for (const responder of ['stranger', 'alpha', 'Beta', ' beta']) {
    const request = offerRequest(NOW, { responder_sovereign_id: responder });
    const offer = recordOf('offerCapabilities', request, KNOWING);
    const { verdict, target_sovereign_id } = inner(offer, 'offerer_evidence');
    assert.deepEqual([verdict, target_sovereign_id], ['block', responder]);
    assert.equal(
      outcomeOf('counterOffer', termsRequest(NOW, { offer })),
      '422 counter_rejected offerer_evidence_blocks',
    );
    assert.equal(
      outcomeOf('acceptAgreement', { offer }),
      '422 accept_rejected offerer_evidence_blocks',
    );
  }
});

test('terms are preserved exactly: number tokens, non-ASCII text, member names of any kind', async () => {
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
  const capabilities = ['b', 'a', 'b'];
  const offer = await created(operate(na, OFFER, offerRequest(now, { scope, capabilities })));
  const counter = await created(
    operate(na, COUNTER, termsRequest(now, { offer, scope, capabilities })),
  );
  const agreement = await created(operate(na, ACCEPT, { counter, original_offer: offer }));
  for (const [record, member] of [
    [offer, 'requested_terms'],
    [counter, 'agreed_terms'],
    [agreement, 'agreed_terms'],
  ] as const) {
    const terms = inner(record, member);
    assert.equal(canonicalJson(inner(terms, 'scope')), canonicalJson(scope));
    assert.match(canonicalJson(terms), /"__proto__":"own"/);
    assert.deepEqual(terms.capabilities, capabilities);
  }
  assert.ok(verifies(offer, na.audience));
  const answer = await post(na, VERIFY, { agreement });
  assert.equal(answer.body.reason, 'accepted');
  const agreed_terms = {
    ...inner(agreement, 'agreed_terms'),
    scope: { ...scope, float: 1 },
  };
  const refused = await post(na, VERIFY, { agreement: { ...agreement, agreed_terms } });
  assert.equal(refused.body.reason, 'invalid_offerer_signature', '1 is not 1.0');
});

test('an empty scope of any kind becomes an empty object', () => {
  for (const change of [drop('scope'), ...MISSING.map(([, scope]) => set({ scope }))]) {
    const made = recordOf('offerCapabilities', change(offerRequest(NOW)));
    assert.deepEqual(inner(made, 'requested_terms').scope, {});
    const request = change(termsRequest(NOW, { offer: theirs }));
    assert.deepEqual(inner(recordOf('counterOffer', request, KNOWING), 'agreed_terms').scope, {});
  }
});

/** Neither the window nor the expiry has to be in the future [trust-t20]. */
test('an offer may lie entirely in the past, and then cannot be accepted', () => {
  const past = {
    valid_from: '2020-01-01T00:00:00Z',
    valid_until: '2020-01-02T00:00:00Z',
    expires_at: '2019-01-01T00:00:00Z',
  };
  const offer = recordOf('offerCapabilities', offerRequest(NOW, past), KNOWING);
  assert.equal(outcomeOf('acceptAgreement', { offer }), '422 accept_rejected offer_expired');
  assert.equal(
    outcomeOf('counterOffer', termsRequest(NOW, { offer })),
    '422 counter_rejected offer_expired',
  );
});

/** Timestamps of requests as they are stored [trust-1-3]; `golden-trust.test.ts` has those of all routes. */
const READABLE: readonly (readonly [string, string])[] = [
  ['2030-01-01T02:00:00+02:00', '2030-01-01T00:00:00Z'],
  ['2029-12-31T18:30:00-05:30', '2030-01-01T00:00:00Z'],
  ['2030-01-01T02:00:00+0200', '2030-01-01T00:00:00Z'],
  ['2030-01-01T02:00:00+02', '2030-01-01T00:00:00Z'],
  ['2030-01-01T00:00:00-00:00', '2030-01-01T00:00:00Z'],
  ['2030-01-01T00:00', '2030-01-01T00:00:00Z'],
  ['2030-01-01t00:00:00z', '2030-01-01T00:00:00Z'],
  ['2030-01-01 00:00:00,25', '2030-01-01T00:00:00.250000Z'],
  ['2030-01-01T00:00:00.000Z', '2030-01-01T00:00:00Z'],
  ['2030-01-01T00:00:00.123456789Z', '2030-01-01T00:00:00.123456Z'],
  ['2030-01-01T00:00:00.000001Z', '2030-01-01T00:00:00.000001Z'],
  ['2028-02-29T23:59:59Z', '2028-02-29T23:59:59Z'],
  ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z'],
  ['9999-12-31T18:59:59-05:00', '9999-12-31T23:59:59Z'],
  ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999999Z'],
  ['2400-01-01T00:00:00.000001Z', '2400-01-01T00:00:00.000001Z'],
];

test('timestamps of an offer are converted to UTC, not just relabeled', () => {
  for (const [given, stored] of READABLE) {
    const ends = { valid_from: '0001-01-01T00:00:00Z', valid_until: given, expires_at: given };
    const offer = recordOf('offerCapabilities', offerRequest(NOW, ends));
    const { valid_from, valid_until } = inner(offer, 'requested_terms');
    assert.deepEqual(
      [valid_from, valid_until, offer.expires_at],
      [ends.valid_from, stored, stored],
    );
  }
});

test('members that requests do not have are ignored', () => {
  const claims = {
    offer_id: 'chosen',
    offerer_sovereign_id: 'gamma',
    graph_digest: 'chosen',
    freshness_commitment: 9,
    signatures: [{ key_id: 'k', sig: 's' }],
    created_at: '2020-01-01T00:00:00Z',
  };
  const offer = recordOf('offerCapabilities', offerRequest(NOW, claims));
  assert.notEqual(offer.offer_id, 'chosen');
  assert.equal(offer.offerer_sovereign_id, 'alpha');
  assert.equal(offer.graph_digest, inner(offer, 'offerer_evidence').graph_digest);
  assert.equal(inner(offer, 'requested_terms').freshness_commitment, 0);
  assert.equal(offer.created_at, formatInstant(NOW));
  assert.ok(verifies(offer, us.key.publicKey));
});

// Counters

test('the capabilities of a counter must be a subset of those offered, regardless of order', () => {
  const capabilities = ['read', 'write', 'data:*', ...LONG_LIST.slice(4)];
  const requested_terms = agreedTerms(NOW, { capabilities });
  const offer = offerBetween(beta, us, NOW, { requested_terms });
  const named = (...lists: readonly string[][]) =>
    inEach(
      'capabilities',
      lists.map((list) => [list.join(), list] as const),
    );
  return checkTable(
    {
      201: named(
        ...[['read'], ['write', 'read', 'data:*'], Array(4).fill('read'), ['data:*']],
        capabilities,
      ),
      '422 counter_rejected capabilities_not_offered': named(
        ...[['data:x'], ['*'], ['Read'], ['read '], ['read', 'delete'], ['constructor']],
      ),
    },
    outcomesOf('counterOffer', termsRequest(NOW, { offer }), KNOWING),
  );
});

// Acceptance

test('our own offer can be accepted and countered here, even if the evidence of the other side blocks', async () => {
  const na = await shared();
  const { now } = await parties(na);
  const offer = await created(operate(na, OFFER, offerRequest(now)));
  await assertOwnEvidence(na, inner(offer, 'offerer_evidence'), 'allow');
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

test('the members of an acceptance decide which kind it is', () => {
  const from = (offerer: string, body: JsonObject) => {
    const { offerer_sovereign_id } = recordOf('acceptAgreement', body, KNOWING);
    assert.equal(offerer_sovereign_id, offerer);
  };
  from('beta', { offer: theirs });
  from('beta', { offer: theirs, counter });
  from('beta', { offer: theirs, original_offer: ours });
  from('alpha', { counter, original_offer: ours });
  // The counter wins.
  from('alpha', { offer: theirs, counter, original_offer: ours });
  return checkTable<JsonObject>(
    {
      '400 missing_accept_fields missing_offer': {
        nothing: {},
        'a counter alone': { counter },
        'an original offer alone': { original_offer: ours },
      },
      '422 accept_rejected invalid_offer': {
        'null for the offer': { offer: null },
        '{} for the offer': { offer: {} },
        'false for the offer': { offer: false },
        'text for the offer': { offer: 'text' },
        'a list for the offer': { offer: [theirs] },
        'a counter for the offer': { offer: counter },
        // With a good offer next to it.
        'null for the original offer': { offer: theirs, counter, original_offer: null },
      },
      '422 accept_rejected invalid_counter': {
        'null for the counter': { offer: theirs, counter: null, original_offer: ours },
        'null for both': { offer: theirs, counter: null, original_offer: null },
      },
    },
    outcomesOf('acceptAgreement', {}, KNOWING),
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

test('a counter that cannot be accepted is refused, and the first reason is reported', () => {
  const causes = Object.keys(UNACCEPTABLE) as (keyof typeof UNACCEPTABLE)[];
  for (const { first, names } of combinationsOf(causes)) {
    const isOurs = !names.includes('not_the_offerer');
    const [offerer, responder] = isOurs ? [us, beta] : [beta, us];
    const original_offer = offerBetween(offerer, responder, NOW);
    const changes: JsonObject = Object.assign({}, ...names.map((name) => UNACCEPTABLE[name]));
    const agreed_terms = agreedTerms(NOW, (changes.agreed_terms ?? {}) as JsonObject);
    const made = counterTo(original_offer, responder, NOW, { ...changes, agreed_terms });
    const isForged = names.includes('invalid_counter_signature');
    const sent = { counter: isForged ? signedAgreement(made, newKey()) : made, original_offer };
    const result = outcomeOf('acceptAgreement', sent, KNOWING);
    assert.equal(result, `422 accept_rejected ${first}`, names.join());
  }
});

test('a counter must match the offer and its signature in every member', () => {
  const made = (changes: JsonObject) => counterTo(ours, beta, NOW, changes);
  const altered = (changes: JsonObject) => ({ ...counter, ...changes });
  const metadata = { weight: 1, kept: ['\u00e9'] };
  const respelt = { ...inner(ours, 'offerer_evidence'), metadata };
  const later = evidence(us, beta, NOW);
  const swapped = { offerer_sovereign_id: 'beta', responder_sovereign_id: 'alpha' };
  return checkTable<JsonObject>(
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
          agreed_terms: agreedTerms(NOW, { capabilities: ['write'] }),
        }),
        'scope changed after signing': altered({
          agreed_terms: { ...inner(counter, 'agreed_terms'), scope: {} },
        }),
        'evidence of the responder changed after signing': altered({ responder_evidence: later }),
        'no signature': altered({ signatures: [] }),
        'the signature of a stranger': signedAgreement(counter, newKey()),
        'a signature over the whole record': resigned(counter, beta.key),
        'the signature of the offer': altered({ signatures: ours.signatures ?? null }),
      },
      '422 accept_rejected counter_expired': {
        'expired a microsecond ago': altered({ expires_at: formatInstant(NOW - 0.001) }),
      },
      '422 accept_rejected invalid_counter': {
        'no terms': without(counter, 'agreed_terms'),
        'no evidence of the responder': without(counter, 'responder_evidence'),
        '17 signatures': altered({ signatures: Array(17).fill(signaturesOf(counter)[0]) }),
        'text for a signature': altered({ signatures: ['text'] }),
      },
    },
    (given) => outcomeOf('acceptAgreement', { counter: given, original_offer: ours }, KNOWING),
  );
});

test('nothing else of a counter is checked', () => {
  const made = (changes: JsonObject) => counterTo(ours, beta, NOW, changes);
  const wider = agreedTerms(NOW, {
    capabilities: ['read', 'read', 'read'],
    scope: { anything: true },
    valid_from: '2000-01-01T00:00:00Z',
    valid_until: '2090-01-01T00:00:00Z',
    freshness_commitment: 77,
  });
  const mislabeled = [{ ...signaturesOf(counter)[0], key_id: 'x' }] as JsonObject[];
  const unchecked: { readonly [name: string]: JsonObject } = {
    'signed by us for the other side': signedAgreement(counter, us.key),
    'whose second signature is right': signedAgreement(counter, newKey(), beta.key),
    'whose signature is labeled wrong': { ...counter, signatures: mislabeled },
    'with another window, scope and freshness': made({ agreed_terms: wider }),
    'without capabilities': made({ agreed_terms: agreedTerms(NOW, { capabilities: [] }) }),
    'that expires now': { ...counter, expires_at: formatInstant(NOW) },
    'that expires later than the offer': { ...counter, expires_at: '2090-01-01T00:00:00Z' },
    'whose evidence blocks': made({ responder_evidence: { verdict: 'block' } }),
    'with members nobody knows': { ...counter, counter_id: 'x', status: 'open' },
  };
  for (const [name, given] of Object.entries(unchecked)) {
    const body = { counter: given, original_offer: ours };
    const agreement = recordOf('acceptAgreement', body, KNOWING);
    const terms = inner(given, 'agreed_terms');
    assert.equal(canonicalJson(inner(agreement, 'agreed_terms')), canonicalJson(terms), name);
    assert.equal(agreement.expires_at, terms.valid_until, name);
    const { publicKey } = us.key;
    assert.equal(agreementSigners(agreement, publicKey).at(-1), publicKey, name);
    assert.deepEqual(signaturesOf(agreement).slice(0, -1), signaturesOf(given), name);
  }
});

test('an agreement never gets more signatures than a reader accepts', async () => {
  const copies = (count: number) => ({
    counter: { ...counter, signatures: Array(count).fill(signaturesOf(counter)[0]) },
    original_offer: ours,
  });
  const agreement = recordOf('acceptAgreement', copies(15), KNOWING);
  const responder_public_keys = [beta.key.publicKey];
  const verdict = await resultOf(verifyAgreement, { agreement, responder_public_keys });
  assert.equal(verdict, 'accepted');
  assert.match(outcomeOf('acceptAgreement', copies(16), KNOWING), /^422 accept_rejected/);
  const retiredKeys = Array.from({ length: 32 }, () => newKey().publicKey);
  assert.equal(outcomeOf('acceptAgreement', copies(15), { ...KNOWING, retiredKeys }), '201');
});

// Who signed an agreement [trust-6-1]; `verifications.test.ts` has what all verifications share.

const [gamma, stranger] = [sovereign('gamma'), newKey()];
const agreement = agreementBetween(beta, gamma, NOW);

test('an agreement is accepted if both signed its seven members, or says who did not', async () => {
  const signed = (...signers: (typeof stranger)[]) => signedAgreement(agreement, ...signers);
  const own = signaturesOf(agreement);
  const junk = (sig: string) => ({ key_id: 'x', sig });
  const [{ sig } = { sig: '' }] = signaturesOf(signed(stranger));
  const altered = (changes: JsonObject) => ({ ...agreement, ...changes });
  const withTerms = (changes: JsonObject) =>
    altered({ agreed_terms: { ...inner(agreement, 'agreed_terms'), ...changes } });
  const made = (changes: JsonObject) => agreementBetween(beta, gamma, NOW, changes);
  const capabilities = (count: number) =>
    made({ agreed_terms: agreedTerms(NOW, { capabilities: LONG_LIST.slice(0, count) }) });
  const laterEnd = formatInstant(NOW + 3 * HOUR).replace('Z', '+02:00');
  await checkVerdicts(
    verifyAgreement,
    {
      accepted: eachAs('agreement', {
        both: agreement,
        'both the other way round': signed(beta.key, gamma.key),
        'a stranger too': signed(stranger, gamma.key, stranger, beta.key),
        'both, with 14 others before': altered({
          signatures: [...Array(14).fill(junk(sig)), ...own],
        }),
        'both, labeled wrong': altered({ signatures: own.map(({ sig: text }) => junk(text)) }),
        'both, and text that is no signature': altered({
          signatures: [junk(''), junk('%'), ...own],
        }),
        'both, over 4096 capabilities': capabilities(4096),
        'an expired agreement': agreementBetween(beta, gamma, NOW - 9 * HOUR),
        'blocking evidence': made({
          offerer_evidence: { verdict: 'block' },
          responder_evidence: {},
        }),
        'other members outside the signed seven': altered({
          expires_at: '2090-01-01T00:00:00Z',
          established_at: '2000-01-01T00:00:00Z',
        }),
        'without the time it was established': without(agreement, 'established_at'),
        'with members nobody knows': altered({ status: 'revoked' }),
        'a freshness as an integral float': withTerms({ freshness_commitment: new JsonFloat(3) }),
      }),
      missing_offerer_signature: eachAs('agreement', {
        nobody: altered({ signatures: [] }),
        'nobody, the member left out': without(agreement, 'signatures'),
      }),
      invalid_offerer_signature: eachAs('agreement', {
        'a stranger': signed(stranger),
        'two strangers': signed(stranger, newKey()),
        'the responder': signed(gamma.key),
        'the responder and a stranger': signed(gamma.key, stranger),
        'both over the whole record': resigned(agreement, beta.key, gamma.key),
        'the same end in another offset': withTerms({ valid_until: laterEnd }),
      }),
      missing_responder_signature: eachAs('agreement', { 'the offerer': signed(beta.key) }),
      invalid_responder_signature: eachAs('agreement', {
        'the offerer twice': signed(beta.key, beta.key),
        'the offerer and a stranger': signed(beta.key, stranger),
      }),
      '400 invalid_agreement invalid_agreement': eachAs('agreement', {
        '17 signatures': altered({ signatures: Array(17).fill(junk(sig)) }),
        '4097 capabilities': capabilities(4097),
      }),
    },
    { offerer_public_keys: [beta.key.publicKey], responder_public_keys: [gamma.key.publicKey] },
  );
});

test('an agreement without an id gets one from its reader, and its signatures still count', async () => {
  const nameless = without(agreementBetween(us, us, NOW), 'agreement_id');
  const verdict = await verdictOf(verifyAgreement, { agreement: nameless });
  assert.match(String(verdict.agreement_id), UUID);
  assert.equal(verdict.accepted, true);
});

test('one signature counts for both parties if the caller names the same key for both', async () => {
  const ours = { agreement: agreementBetween(us, beta, NOW, {}, [us.key]) };
  const theirs = { agreement: agreementBetween(us, beta, NOW, {}, [beta.key]) };
  const both = { agreement: agreementBetween(us, beta, NOW) };
  const [a, b] = [[us.key.publicKey], [beta.key.publicKey]];
  const keys = (offerer: string[] | null, responder: string[] | null) => ({
    offerer_public_keys: offerer,
    responder_public_keys: responder,
  });
  await checkVerdicts(verifyAgreement, {
    accepted: {
      'ours, no keys given': ours,
      'ours, null for keys': { ...ours, ...keys(null, null) },
      'theirs, their key for both': { ...theirs, ...keys(b, b) },
      'both, their key for the responder': { ...both, responder_public_keys: b },
      'both, keys the wrong way round': { ...both, ...keys(b, a) },
    },
    invalid_offerer_signature: {
      'theirs, no keys given': theirs,
      'ours, no key for the offerer': { ...ours, offerer_public_keys: [] },
    },
    missing_responder_signature: {
      'ours, their key for the responder': { ...ours, responder_public_keys: b },
      'ours, no key for the responder': { ...ours, responder_public_keys: [] },
    },
    invalid_responder_signature: {
      'both, no key for the responder': { ...both, responder_public_keys: [] },
    },
  });
});

test('answers of the agreement routes are accepted as input', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const request = offerRequest(now, { scope: { rate: new JsonFloat(1), place: 'Zürich' } });
  const answer = await operate(na, OFFER, request);
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
  assert.match(answer.text, /"rate":1\.0/);
  const offer = parsed(answer);
  const counter = await created(operate(na, COUNTER, termsRequest(now, { offer })));
  const accepted = await created(operate(na, ACCEPT, { counter, original_offer: offer }));
  assert.equal(
    canonicalJson(inner(accepted, 'offerer_evidence')),
    canonicalJson(inner(offer, 'offerer_evidence')),
  );
});

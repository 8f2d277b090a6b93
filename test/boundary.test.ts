/**
 * Boundary decisions [trust-2-6] to [trust-2-8], [trust-4-4], [trust-5-4], and agreements under which nothing is decided
 * or committed to. `trust-commands.test.ts` has what all commands share.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyDecision } from '../src/protocol/api/verifications.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { FORGED_SIGNATURE } from './support/hostile.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { checkTable } from './support/tables.ts';
import { audited, issued, revokeTreaty, sovereign, startUnlimited, UUID } from './support/trust.ts';
import { outcomeOf, outcomesOf, recordOf } from './support/trust-commands.ts';
import {
  agreedTerms,
  agreementBetween,
  combinationsOf,
  counterTo,
  created,
  decisionBy,
  evidence,
  freshnessProof,
  inner,
  offerBetween,
  ourselves,
  outcomeWithCause,
  recognized,
  resigned,
  signaturesOf,
  signedAgreement,
  singlySigned,
  without,
} from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, resultOf, us } from './support/verifications.ts';

const DECIDE = '/admin/boundary/decide';
const VALIDITY = 300 * SECOND;

const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];

/** An agreement signed by both sides, whose terms have no freshness requirement. */
function agreementOf(terms: JsonObject = {}): JsonObject {
  const agreed_terms = agreedTerms(NOW, { freshness_commitment: 0, ...terms });
  return agreementBetween(us, beta, NOW, { agreed_terms });
}

function decide(agreement: JsonObject, changes: JsonObject = {}): JsonObject {
  return recordOf('decideBoundary', { agreement, requested_capability: 'read', ...changes });
}

/** Names of the evaluated gates; the failed one in capitals. */
function gatesOf(decision: JsonObject): string[] {
  return (decision.gate_results as JsonObject[]).map(({ gate_name, passed, detail }) => {
    assert.equal(typeof detail, 'string');
    assert.notEqual(detail, '');
    return passed === true ? String(gate_name) : String(gate_name).toUpperCase();
  });
}

// Decisions

const DENIALS = {
  capability_check: 'capability out of scope',
  validity_window: 'outside validity window',
  freshness_check: 'insufficient freshness',
} as const;

type Gate = keyof typeof DENIALS;

const GATES = Object.keys(DENIALS) as Gate[];

/** How to make each gate fail. */
const CLOSED: { readonly [gate in Gate]: JsonObject } = {
  capability_check: { capabilities: ['write'] },
  validity_window: { valid_until: '2020-01-02T00:00:00Z', valid_from: '2020-01-01T00:00:00Z' },
  freshness_check: { freshness_commitment: 1 },
};

test('gates are tried in order, up to the first that fails', async () => {
  assert.deepEqual(gatesOf(decide(agreementOf())), GATES);
  for (const { first, names } of combinationsOf(GATES)) {
    const decision = decide(agreementOf(Object.assign({}, ...names.map((name) => CLOSED[name]))));
    assert.deepEqual([decision.authorized, decision.denial_reason], [false, DENIALS[first]]);
    const passed = GATES.slice(0, GATES.indexOf(first));
    assert.deepEqual(gatesOf(decision), [...passed, first.toUpperCase()]);
    assert.equal(decision.decision_valid_until, formatInstant(NOW + VALIDITY), 'not capped');
    const reason = `unauthorized_${DENIALS[first].replaceAll(' ', '_')}`;
    assert.equal(await resultOf(verifyDecision, { decision }), reason);
  }
});

test('capabilities are compared as exact text, without wildcards', () => {
  const agreed = ['read', 'data:*', 'Zürich', '*', '5'];
  const agreement = agreementOf({ capabilities: ['read', ...agreed] });
  const others = ['Zu\u0308rich', 'data:x', 'data:', 'Read', 'rea', 'read ', 'read\u0000'];
  for (const requested_capability of [...agreed, ...others, 'write', 'length', '0']) {
    const { authorized } = decide(agreement, { requested_capability });
    assert.equal(authorized, agreed.includes(requested_capability), requested_capability);
  }
  const none = decide(agreementOf({ capabilities: [] }));
  assert.equal(none.denial_reason, 'capability out of scope');
});

test('both ends of the window are part of it, and an authorization does not outlive it', () => {
  for (const [name, from, until, validFor] of [
    ['from now on', 0, HOUR, VALIDITY],
    ['from a microsecond on', 0.001, HOUR, null],
    ['until now', -HOUR, 0, 0],
    ['until a microsecond ago', -HOUR, -0.001, null],
    ['this instant alone', 0, 0, 0],
    ['for 1 ms more', -HOUR, 1, 1],
    ['for 299999 ms more', -HOUR, VALIDITY - 1, VALIDITY - 1],
    ['for 300000 ms more', -HOUR, VALIDITY, VALIDITY],
    ['for 300001 ms more', -HOUR, VALIDITY + 1, VALIDITY],
    ['the wrong way round', HOUR, -HOUR, null],
    ['not yet', HOUR, 2 * HOUR, null],
    ['no longer', -2 * HOUR, -HOUR, null],
  ] as const) {
    const window = {
      valid_from: formatInstant(NOW + from),
      valid_until: formatInstant(NOW + until),
    };
    const { authorized, denial_reason, decision_valid_until } = decide(agreementOf(window));
    assert.equal(authorized, validFor !== null, name);
    assert.equal(denial_reason, validFor === null ? DENIALS.validity_window : null);
    assert.equal(decision_valid_until, formatInstant(NOW + (validFor ?? VALIDITY)), name);
  }
});

test('neither the unsigned end of an agreement nor its id decides anything, nor does its evidence', () => {
  const expired = agreementOf(CLOSED.validity_window);
  const prolonged = { ...expired, expires_at: formatInstant(NOW + HOUR) };
  assert.equal(decide(prolonged).authorized, false);
  const current = { ...agreementOf(), expires_at: '2020-01-01T00:00:00Z', agreement_id: 'other' };
  const decision = decide(current);
  assert.deepEqual([decision.authorized, decision.agreement_id], [true, 'other']);
  const blocking = agreementBetween(us, beta, NOW, {
    agreed_terms: agreedTerms(NOW, { freshness_commitment: 0 }),
    offerer_evidence: { verdict: 'block' },
    responder_evidence: { verdict: 'block' },
  });
  assert.equal(decide(blocking).authorized, true);
});

test('a request under our own agreement is denied once its window is over, with 201', async () => {
  await using na = await startUnlimited();
  await recognized(na, beta);
  const now = na.clock.now();
  const requested_terms = agreedTerms(now, { freshness_commitment: 0 });
  const offer = offerBetween(beta, ourselves(na), now, { requested_terms });
  const accepted = await created(operate(na, '/admin/agreements/accept', { offer }));
  const agreement = signedAgreement(accepted, ourselves(na).key, beta.key);
  const decided = async () => {
    const request = { agreement, requested_capability: 'read' };
    const { authorized, denial_reason } = await created(operate(na, DECIDE, request));
    assert.equal(audited(na, 'boundary_decision_made').at(-1)?.authorized, authorized);
    return authorized === true ? 'authorized' : denial_reason;
  };
  assert.equal(await decided(), 'authorized');
  na.clock.advance(HOUR);
  assert.equal(await decided(), 'authorized', 'its last instant');
  na.clock.advance(1);
  assert.equal(await decided(), DENIALS.validity_window);
});

test('the sequence of the context must reach the sequence that was committed to', () => {
  for (const [commitment, sequence, authorized] of [
    [0, 0, true],
    [0, 5, true],
    [3, 3, true],
    [3, 4, true],
    [3, new JsonFloat(3), true],
    [3, Number.MAX_SAFE_INTEGER, true],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, true],
    [3, 2, false],
    [3, 0, false],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 1, false],
    [3, null, false],
    [3, '', false],
  ] as [number, JsonValue, boolean][]) {
    const agreement = agreementOf({ freshness_commitment: commitment });
    const decision = decide(agreement, { context: { context_freshness_seq: sequence } });
    assert.equal(decision.authorized, authorized, `${String(sequence)} for ${commitment}`);
    assert.equal(decision.denial_reason, authorized ? null : DENIALS.freshness_check);
  }
  const agreement = agreementOf();
  const agreed_terms = without(inner(agreement, 'agreed_terms'), 'freshness_commitment');
  assert.equal(decide({ ...agreement, agreed_terms }).authorized, true, 'by default it is 0');
});

// The agreement [trust-4-4]

test('decisions require an agreement with our own signature', async () => {
  const agreement = agreementOf();
  const altered = (changes: JsonObject) => ({ ...agreement, ...changes });
  const signed = (...signers: (typeof us.key)[]) => signedAgreement(agreement, ...signers);
  const wide = agreedTerms(NOW, { capabilities: ['read', 'admin'], freshness_commitment: 0 });
  const mislabeled = signaturesOf(agreement).map(({ sig }) => ({ key_id: '', sig }));
  const ofOffer = offerBetween(us, beta, NOW).signatures ?? null;
  await checkTable<JsonObject>(
    {
      201: {
        'of both': agreement,
        'ours alone': signed(us.key),
        'ours after that of a stranger': signed(newKey(), us.key),
        'ours after that of the peer, which accepted it first': signed(beta.key, us.key),
        'ours, labeled wrong': altered({ signatures: mislabeled }),
      },
      '422 boundary_eval_failed agreement_not_signed_here': {
        'of the peer alone': signed(beta.key),
        'of a stranger': signed(newKey()),
        none: altered({ signatures: [] }),
        'none at all': without(agreement, 'signatures'),
        'ours over the whole record': resigned(agreement, us.key),
        'ours on the offer': altered({ signatures: ofOffer }),
        'ours on narrower terms': altered({ agreed_terms: wide }),
        'ours with another responder': altered({ responder_sovereign_id: 'gamma' }),
        'ours with other evidence': altered({ offerer_evidence: evidence(us, beta, NOW) }),
        'that verifies under weak keys': altered({
          signatures: [{ key_id: 'w', sig: FORGED_SIGNATURE }],
        }),
      },
    },
    (given) => outcomeOf('decideBoundary', { agreement: given, requested_capability: 'read' }),
  );
});

/** The commands that need an agreement, each with its refusal. */
const GROUNDED = [
  ['decideBoundary', DECIDE, '422 boundary_eval_failed', { requested_capability: 'read' }],
  [
    'commitCapabilities',
    '/admin/disclosure/commit',
    '422 commit_failed',
    { capabilities: ['read'] },
  ],
] as const;

const UNACCEPTED = 'agreement_not_signed_by_other';

test('decisions and commitments require an agreement that the other party signed too', async () => {
  const terms = { agreed_terms: agreedTerms(NOW, { freshness_commitment: 0 }) };
  const offer = offerBetween(beta, us, NOW, { requested_terms: terms.agreed_terms });
  const counter = counterTo(offer, us, NOW, terms);
  const wrapped = { ...counter, agreement_id: 'wrapped', established_at: formatInstant(NOW) };
  const stranger = newKey();
  const between = (offerer: typeof us, responder: typeof us, ...signers: (typeof stranger)[]) =>
    agreementBetween(offerer, responder, NOW, terms, signers);
  const label = (agreement: JsonObject, key_id: string) => ({
    ...agreement,
    signatures: signaturesOf(agreement).map(({ sig }) => ({ key_id, sig })),
  });
  const table = {
    201: {
      'a counter that its offerer accepted': signedAgreement(wrapped, us.key, beta.key),
      'both, with any labels': label(between(beta, us, us.key, beta.key), 'x'),
      'an answer of ours to our own offer': between(us, beta, us.key),
      'one with ourselves': between(us, us, us.key),
      'never recognized: both': between(gamma, us, us.key, gamma.key),
    },
    [UNACCEPTED]: {
      'a counter of ours, wrapped as an agreement': wrapped,
      'ours twice': between(beta, us, us.key, us.key),
      'ours and that of a stranger': between(beta, us, us.key, stranger),
      'never recognized: ours alone': between(gamma, us, us.key),
      'never recognized: ours twice': between(gamma, us, us.key, us.key),
      'never recognized: under a key that no signature names': label(
        between(gamma, us, us.key, gamma.key),
        'gamma-1',
      ),
    },
    not_a_party: {
      'one between two others': between(beta, gamma, us.key),
      'one between two others that all three signed': between(
        ...([beta, gamma, us.key, beta.key, gamma.key] as const),
      ),
    },
  };
  for (const [name, , refusal, rest] of GROUNDED) {
    await checkTable<JsonObject>(table, (agreement) =>
      outcomeOf(name, { agreement, ...rest }, { partners: [beta] }).replace(`${refusal} `, ''),
    );
  }
});

test('nothing is decided under an agreement with a sovereign whose treaties have all ended', async () => {
  await using na = await startUnlimited();
  const alpha = ourselves(na);
  const now = na.clock.now();
  const window = { valid_until: formatInstant(now + 1000 * HOUR) };
  const terms = { agreed_terms: agreedTerms(now, { freshness_commitment: 0, ...window }) };
  const ofTheirOffer = agreementBetween(beta, alpha, now, terms);
  const agreements = [
    ofTheirOffer,
    agreementBetween(alpha, beta, now, terms),
    agreementBetween(alpha, beta, now, terms, [alpha.key]),
  ];
  const assertAnswers = async (expected: string, given = agreements) => {
    for (const agreement of given) {
      for (const [, path, refusal, rest] of GROUNDED) {
        const answer = outcomeWithCause(await operate(na, path, { agreement, ...rest }));
        assert.equal(answer.replace(`${refusal} `, ''), expected, path);
      }
    }
  };
  const revoke = async ({ treaty_id }: JsonObject) =>
    assert.equal(outcome(await revokeTreaty(na, treaty_id, { reason: 'over' })), '200');
  await assertAnswers('201');
  const [first, second] = [await recognized(na, beta), await recognized(na, beta)];
  await revoke(first);
  await assertAnswers('201');
  await revoke(second);
  await assertAnswers('treaty_ended');
  await recognized(na, beta, { validity_hours: 1 });
  await assertAnswers('201');
  na.clock.advance(HOUR);
  await assertAnswers('treaty_ended');
  // With another key of beta, its earlier signature no longer counts.
  await recognized(na, beta, { subject_public_keys: [newKey().publicKey] });
  await assertAnswers(UNACCEPTED, [ofTheirOffer]);
  // Operators sign for nobody but themselves.
  const operator = na.privileged.key;
  await assertAnswers(UNACCEPTED, [signedAgreement(ofTheirOffer, alpha.key, operator)]);
  await assertAnswers('agreement_not_signed_here', [signedAgreement(ofTheirOffer, operator)]);
});

test('a treaty that is being renewed lends its keys throughout', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const agreed_terms = agreedTerms(now, { freshness_commitment: 0 });
  const agreement = agreementBetween(beta, ourselves(na), now, { agreed_terms });
  let { treaty_id } = await recognized(na, beta);
  for (let round = 0; round < 10; round += 1) {
    const renewal = operate(na, `/admin/recognition-treaties/${treaty_id}/renew`);
    const decisions = await Promise.all(
      Array.from({ length: 5 }, () =>
        operate(na, DECIDE, { agreement, requested_capability: 'read' }),
      ),
    );
    assert.deepEqual([...new Set(decisions.map(outcomeWithCause))], ['201']);
    ({ treaty_id } = await issued(renewal));
  }
});

// The context

test('who asks and who is asked must be parties of the agreement, if the context names them', async () => {
  const agreement = agreementOf();
  const request = { agreement, requested_capability: 'read' };
  for (const member of ['requester_sovereign_id', 'provider_sovereign_id']) {
    const named = (...names: (string | null)[]) =>
      Object.fromEntries(names.map((name) => [`${name}`, { context: { [member]: name } }]));
    await checkTable<JsonObject>(
      {
        201: named('alpha', 'beta', '', null),
        '422 boundary_eval_failed context_party_mismatch': named('gamma', 'Beta', 'beta '),
      },
      outcomesOf('decideBoundary', request),
    );
  }
  const context = { requester_sovereign_id: 'gamma' };
  assert.equal(
    outcomeOf('decideBoundary', {
      ...request,
      agreement: { ...agreement, signatures: [] },
      context,
    }),
    '422 boundary_eval_failed agreement_not_signed_here',
  );
});

test('an empty context id is replaced by a new one each time, and nothing else of the context is returned', () => {
  const agreement = agreementOf();
  const seen = new Set<JsonValue | undefined>();
  for (const context of [{}, ...['', null, false, [], {}].map((context_id) => ({ context_id }))]) {
    const { context_id } = decide(agreement, { context });
    assert.match(String(context_id), UUID);
    seen.add(context_id);
  }
  assert.equal(seen.size, 6);
  const context = {
    context_id: 'c',
    parent_kind: 'secret-kind',
    requester_sovereign_id: 'beta',
    provider_sovereign_id: 'alpha',
    request_parameters: { dataset: 'secret-data' },
    requested_at: '2020-01-01T00:00:00Z',
  };
  const decision = decide(agreement, { context });
  assert.deepEqual([decision.authorized, decision.context_id], [true, 'c']);
  assert.doesNotMatch(JSON.stringify(decision), /secret/);
});

test('an agreement with 16 signatures and 4096 capabilities is accepted, a larger one is not', async () => {
  const long = Array.from({ length: 4097 }, (_, index) => `c${index}`);
  const agreement = agreementOf();
  const [signature] = signaturesOf(signedAgreement(agreement, newKey()));
  const signatures = (count: number) => ({
    ...agreement,
    signatures: [...Array(count - 2).fill(signature), ...signaturesOf(agreement)],
  });
  const listed = (capabilities: readonly string[]) => agreementOf({ capabilities });
  await checkTable<readonly [agreement: JsonObject, requested_capability: string]>(
    {
      201: {
        '16 signatures': [signatures(16), 'read'],
        '4096 capabilities': [listed(long.slice(1)), 'c4096'],
      },
      '400 invalid_agreement invalid_agreement': {
        '17 signatures': [signatures(17), 'read'],
        '4097 capabilities': [listed(long), 'c4096'],
        'a negative commitment': [agreementOf({ freshness_commitment: -1 }), 'read'],
        'a window without offset': [agreementOf({ valid_from: '2026-01-01T00:00:00' }), 'read'],
      },
    },
    ([given, requested_capability]) =>
      outcomeOf('decideBoundary', { agreement: given, requested_capability }),
  );
});

// Whether a boundary decision is accepted, and why [trust-6-2]; `verifications.test.ts` has what all verifications
// share.

const EXPIRED = { decision_valid_until: '2020-01-01T00:00:00Z' };
/** In bound members, numbers keep their kind, and text that looks like a datetime keeps its spelling. */
const BOUND = {
  policy_binding: {
    policy_id: 'policy-7',
    weight: new JsonFloat(1),
    bound_at: '2026-01-15T12:00:00+00:00',
  },
  attestation_binding: {
    attestation_id: 'attestation-7',
    subject_id: 'agent-7',
    issuer_sovereign_id: 'gamma',
    attestation_digest: 'ab'.repeat(32),
    revocation_seq_checked: 4,
  },
};
const BINDINGS = ['policy_binding', 'attestation_binding'] as const;

const genuine = decisionBy(beta, NOW);
const signed = (changes: JsonObject) => decisionBy(beta, NOW, changes);
const altered = (changes: JsonObject) => ({ ...genuine, ...changes });
const denied = (denial_reason: JsonValue) => signed({ authorized: false, denial_reason });

function check(table: {
  readonly [reason: string]: { readonly [name: string]: JsonObject };
}): Promise<void> {
  const bodies = Object.entries(table).map(([reason, decisions]) => [
    reason,
    eachAs('decision', decisions),
  ]);
  const keys = { operator_public_keys: [beta.key.publicKey] };
  return checkVerdicts(verifyDecision, Object.fromEntries(bodies), keys);
}

test('a decision is verified, and the first reason is reported', async () => {
  const proof = freshnessProof(beta, NOW);
  const unsigned = altered({ signature: null });
  const [listSignature] = signaturesOf(resigned(unsigned, beta.key));
  await check({
    authorized: {
      authorized: genuine,
      'without freshness proof': signed({ freshness_proof: null }),
      'with a freshness proof that nobody signed': signed({
        freshness_proof: { ...proof, signature: null },
      }),
      'with a freshness proof of another, long over': signed({
        freshness_proof: freshnessProof(sovereign('gamma'), NOW - 9 * HOUR),
      }),
      'without gates': signed({ gate_results: [] }),
      'authorized though a reason is given': signed({ denial_reason: 'capability out of scope' }),
      'valid until now': signed({ decision_valid_until: formatInstant(NOW) }),
      'made in the future': decisionBy(beta, NOW + 9 * HOUR),
      'labeled wrong': singlySigned(genuine, beta.key, ''),
      'with members nobody knows': altered({ unknown_member: {} }),
    },
    missing_signature: {
      unsigned,
      'unsigned, the member left out': without(genuine, 'signature'),
      'unsigned and expired': { ...unsigned, ...EXPIRED },
    },
    decision_expired: {
      'valid until a microsecond ago': signed({ decision_valid_until: formatInstant(NOW - 0.001) }),
      expired: signed(EXPIRED),
      'expired and denied': signed({ ...EXPIRED, authorized: false }),
      'expired and not genuine': altered(EXPIRED),
    },
    invalid_signature: {
      'with another freshness proof than was signed': altered({ freshness_proof: proof }),
      'of a stranger': decisionBy(sovereign('beta'), NOW),
      'denied, then said to be authorized': { ...signed({ authorized: false }), authorized: true },
      'authorized, then said to be denied': altered({ authorized: false }),
      'of another agreement': altered({ agreement_id: 'x' }),
      'signed as a list is': altered({ signature: listSignature ?? null }),
      'with members nobody knows that were signed': signed({ unknown_member: {} }),
    },
  });
});

test('what a decision is bound to is part of what was signed', async () => {
  await check({ authorized: { 'bound to a policy and an attestation': signed(BOUND) } });
  for (const member of BINDINGS) {
    await check({
      authorized: {
        [`with only ${member}`]: signed({ [member]: BOUND[member] }),
        [`with an empty ${member}`]: signed({ [member]: {} }),
        [`with ${member} null, which nobody signs`]: altered({ [member]: null }),
      },
      invalid_signature: {
        [`with ${member} null in the signed text`]: signed({ [member]: null }),
        [`with ${member} added after it was signed`]: altered({ [member]: BOUND[member] }),
        [`with another ${member} than was signed`]: {
          ...signed(BOUND),
          [member]: { ...BOUND[member], more: 1 },
        },
        [`without the ${member} that was signed`]: without(signed(BOUND), member),
      },
      '400 invalid_decision invalid_decision': {
        [`a list for ${member}`]: altered({ [member]: [] }),
        [`text for ${member}`]: altered({ [member]: 'x' }),
      },
    });
  }
});

test('a denial is classified by the words of its reason', () =>
  check({
    unauthorized_capability_out_of_scope: {
      'for the capability': denied('capability out of scope'),
      'by a text with all words': denied('freshness, window, capability'),
    },
    unauthorized_outside_validity_window: {
      'for the window': denied('outside validity window'),
      'by a text with validity': denied('gate validity: no'),
      'by a text with window': denied('the window is shut'),
      'by a text with two words': denied('freshness of the window'),
    },
    unauthorized_insufficient_freshness: { 'for freshness': denied('insufficient freshness') },
    unauthorized_gate_failure: {
      'in capitals': denied('CAPABILITY'),
      'by a gate of its own': denied("gate 'quota' failed: used up"),
      'without a word': denied(''),
      'without a reason': denied(null),
      'the reason left out': without(denied(null), 'denial_reason'),
    },
  }));

test('invalid decisions are refused', () =>
  check({
    '400 invalid_decision invalid_decision': {
      'without context_id': without(genuine, 'context_id'),
      'without agreement_id': without(genuine, 'agreement_id'),
      'without authorized': without(genuine, 'authorized'),
      'without decision_valid_until': without(genuine, 'decision_valid_until'),
      'without operator_sovereign_id': without(genuine, 'operator_sovereign_id'),
      'text for a flag': altered({ authorized: 'true' }),
      '1 for a flag': altered({ authorized: 1 }),
      'null for a list': altered({ gate_results: null }),
      'null for a datetime': altered({ decision_made_at: null }),
      'a datetime without offset': altered({ decision_valid_until: '2090-01-01T00:00:00' }),
      'a datetime as a number': altered({ decision_valid_until: 4_000_000_000 }),
      'a gate without detail': altered({ gate_results: [{ gate_name: 'g', passed: true }] }),
      'a list of signatures': altered({ signature: [genuine.signature ?? null] }),
      'a freshness proof with a negative sequence': altered({
        freshness_proof: { ...inner(genuine, 'freshness_proof'), feed_sequence: -1 },
      }),
    },
  }));

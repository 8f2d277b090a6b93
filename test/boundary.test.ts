/**
 * Boundary decisions over HTTP: decide, verify [trust-2-6] to [trust-2-8], [trust-4-4], [trust-5-4],
 * [trust-6-2].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { FORGED_SIGNATURE, valuesExcept } from './support/hostile.ts';
import {
  auditEvents,
  newKey,
  operate,
  operatorRequest,
  outcome,
  sendSigned,
} from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { checkChanges, checkTable, inEach } from './support/tables.ts';
import { audited, post, sovereign, startUnlimited, UUID } from './support/trust.ts';
import {
  agreedTerms,
  agreementBetween,
  answersTo,
  type Change,
  combinationsOf,
  counterTo,
  created,
  drop,
  eachOf,
  evidence,
  inner,
  MISSING,
  mutationsOf,
  offerBetween,
  ourselves,
  outcomeWithCause,
  recognized,
  resigned,
  set,
  signaturesOf,
  signedAgreement,
  singlyVerifies,
  without,
} from './support/trust-protocol.ts';

const shared = sharedAuthority();

const DECIDE = '/admin/boundary/decide';
const VERIFY = '/boundary/verify';
const VALIDITY = 300 * SECOND;

/** An agreement signed by both sides, whose terms have no freshness requirement. */
function agreementOf(na: TestAuthority, terms: JsonObject = {}): JsonObject {
  const now = na.clock.now();
  const agreed_terms = agreedTerms(now, { freshness_commitment: 0, ...terms });
  return agreementBetween(ourselves(na), sovereign('beta'), now, { agreed_terms });
}

function decide(na: TestAuthority, agreement: JsonObject, changes: JsonObject = {}) {
  return operate(na, DECIDE, { agreement, requested_capability: 'read', ...changes });
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

test('a request within the agreement is authorized: the decision is signed and audited', async () => {
  const na = await shared();
  const now = na.clock.now();
  const agreement = agreementOf(na);
  const body = { agreement, requested_capability: 'read', context: { context_id: 'context-7' } };
  const decision = await created(operate(na, DECIDE, body, { operator: na.standard }));
  const { decision_id, gate_results, signature, ...rest } = decision;
  assert.match(String(decision_id), UUID);
  assert.deepEqual(rest, {
    context_id: 'context-7',
    agreement_id: agreement.agreement_id,
    authorized: true,
    denial_reason: null,
    decision_made_at: formatInstant(now),
    decision_valid_until: formatInstant(now + VALIDITY),
    operator_sovereign_id: 'alpha',
    freshness_proof: null,
  });
  assert.deepEqual(gatesOf(decision), ['capability_check', 'validity_window', 'freshness_check']);
  for (const gate of gate_results as JsonObject[]) {
    assert.deepEqual(Object.keys(gate).sort(), ['detail', 'gate_name', 'passed']);
  }
  assert.equal((signature as JsonObject).key_id, na.audience);
  assert.ok(singlyVerifies(decision, na.audience));
  assert.deepEqual(audited(na, 'boundary_decision_made').at(-1), {
    decision_id,
    context_id: 'context-7',
    agreement_id: agreement.agreement_id,
    requested_capability: 'read',
    authorized: true,
  });
  const again = await created(decide(na, agreement));
  assert.notEqual(again.decision_id, decision_id);
  assert.match(String(again.context_id), UUID);
});

test('the configured label of the authority key is in the signature of a decision', async () => {
  await using na = await startUnlimited({ environment: { NA_KEY_ID: 'na-2026' } });
  const decision = await created(decide(na, agreementOf(na)));
  assert.equal(inner(decision, 'signature').key_id, 'na-2026');
  assert.ok(singlyVerifies(decision, na.audience));
});

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
  const na = await shared();
  const now = na.clock.now();
  for (const { first, names } of combinationsOf(GATES)) {
    const agreement = agreementOf(na, Object.assign({}, ...names.map((name) => CLOSED[name])));
    const decision = await created(decide(na, agreement));
    assert.deepEqual([decision.authorized, decision.denial_reason], [false, DENIALS[first]]);
    const passed = GATES.slice(0, GATES.indexOf(first));
    assert.deepEqual(gatesOf(decision), [...passed, first.toUpperCase()]);
    assert.equal(decision.decision_valid_until, formatInstant(now + VALIDITY), 'not capped');
    assert.ok(singlyVerifies(decision, na.audience));
    assert.equal(audited(na, 'boundary_decision_made').at(-1)?.authorized, false);
    const { body } = await post(na, VERIFY, { decision });
    assert.deepEqual(body, {
      accepted: true,
      authorized: false,
      reason: `unauthorized_${DENIALS[first].replaceAll(' ', '_')}`,
      decision_id: decision.decision_id,
    });
  }
});

test('capabilities are compared as exact text, without wildcards', async () => {
  const na = await shared();
  const agreement = agreementOf(na, {
    capabilities: ['read', 'read', 'data:*', 'Zürich', '*', '5'],
  });
  const agreed = ['read', 'data:*', 'Zürich', '*', '5'];
  const others = ['Zu\u0308rich', 'data:x', 'data:', 'Read', 'rea', 'read ', 'read\u0000'];
  for (const capability of [...agreed, ...others, 'write', 'length', '0']) {
    const decision = await created(decide(na, agreement, { requested_capability: capability }));
    assert.equal(decision.authorized, agreed.includes(capability), capability);
    const details = audited(na, 'boundary_decision_made').at(-1);
    assert.equal(details?.requested_capability, capability);
  }
});

test('an agreement without capabilities authorizes nothing', async () => {
  const na = await shared();
  const decision = await created(decide(na, agreementOf(na, { capabilities: [] })));
  assert.equal(decision.denial_reason, 'capability out of scope');
});

test('both ends of the window are part of it, and an authorization does not outlive it', async () => {
  const na = await shared();
  const now = na.clock.now();
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
    const agreement = agreementOf(na, {
      valid_from: formatInstant(now + from),
      valid_until: formatInstant(now + until),
    });
    const decision = await created(decide(na, agreement));
    assert.equal(decision.authorized, validFor !== null, name);
    assert.equal(decision.denial_reason, validFor === null ? DENIALS.validity_window : null);
    const end = formatInstant(now + (validFor ?? VALIDITY));
    assert.equal(decision.decision_valid_until, end, name);
  }
});

test('neither the unsigned end of an agreement nor its id decides anything', async () => {
  const na = await shared();
  const expired = agreementOf(na, CLOSED.validity_window);
  const prolonged = { ...expired, expires_at: formatInstant(na.clock.now() + HOUR) };
  assert.equal((await created(decide(na, prolonged))).authorized, false);
  const current = { ...agreementOf(na), expires_at: '2020-01-01T00:00:00Z', agreement_id: 'other' };
  const decision = await created(decide(na, current));
  assert.deepEqual([decision.authorized, decision.agreement_id], [true, 'other']);
});

test('a request under our own agreement is denied once its window is over, with 201', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  await recognized(na, beta);
  const now = na.clock.now();
  const requested_terms = agreedTerms(now, { freshness_commitment: 0 });
  const offer = offerBetween(beta, ourselves(na), now, { requested_terms });
  const accepted = await created(operate(na, '/admin/agreements/accept', { offer }));
  const agreement = signedAgreement(accepted, ourselves(na).key, beta.key);
  assert.equal((await created(decide(na, agreement))).authorized, true);
  na.clock.advance(HOUR);
  assert.equal((await created(decide(na, agreement))).authorized, true, 'its last instant');
  na.clock.advance(1);
  const decision = await created(decide(na, agreement));
  assert.deepEqual([decision.authorized, decision.denial_reason], [false, DENIALS.validity_window]);
});

test('the sequence of the context must reach the sequence that was committed to', async () => {
  const na = await shared();
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
    const agreement = agreementOf(na, { freshness_commitment: commitment });
    const context = { context_freshness_seq: sequence };
    const decision = await created(decide(na, agreement, { context }));
    assert.equal(decision.authorized, authorized, `${String(sequence)} for ${commitment}`);
    assert.equal(decision.denial_reason, authorized ? null : DENIALS.freshness_check);
  }
});

test('the commitment of an agreement without one is 0', async () => {
  const na = await shared();
  const agreement = agreementOf(na);
  const agreed_terms = without(inner(agreement, 'agreed_terms'), 'freshness_commitment');
  assert.equal((await created(decide(na, { ...agreement, agreed_terms }))).authorized, true);
});

// The agreement [trust-4-4]

test('decisions require an agreement with our own signature', async () => {
  await using na = await startUnlimited();
  const [alpha, beta] = [ourselves(na), sovereign('beta')];
  await recognized(na, beta);
  const now = na.clock.now();
  const agreement = agreementOf(na);
  const altered = (changes: JsonObject) => ({ ...agreement, ...changes });
  const signed = (...signers: (typeof alpha.key)[]) => signedAgreement(agreement, ...signers);
  const wide = agreedTerms(now, { capabilities: ['read', 'admin'], freshness_commitment: 0 });
  const mislabeled = signaturesOf(agreement).map(({ sig }) => ({ key_id: '', sig }));
  await checkTable<JsonObject>(
    {
      201: {
        'of both': agreement,
        'ours alone': signed(alpha.key),
        'ours after that of a stranger': signed(newKey(), alpha.key),
        'ours, labeled wrong': altered({ signatures: mislabeled }),
      },
      '422 boundary_eval_failed agreement_not_signed_here': {
        'of the peer alone': signed(beta.key),
        'of a stranger': signed(newKey()),
        'of an operator': signed(na.privileged.key),
        none: altered({ signatures: [] }),
        'none at all': without(agreement, 'signatures'),
        'ours over the whole record': resigned(agreement, alpha.key),
        'ours on the offer': altered({
          signatures: offerBetween(alpha, beta, now).signatures ?? null,
        }),
        'ours on narrower terms': altered({ agreed_terms: wide }),
        'ours with another responder': altered({ responder_sovereign_id: 'gamma' }),
        'ours with other evidence': altered({ offerer_evidence: evidence(alpha, beta, now) }),
        'that verifies under weak keys': altered({
          signatures: [{ key_id: 'w', sig: FORGED_SIGNATURE }],
        }),
      },
    },
    async (given) => outcomeWithCause(await decide(na, given)),
  );
});

/** A route that needs an agreement, with its refusal. */
const GROUNDED: readonly (readonly [string, string, JsonObject])[] = [
  [DECIDE, '422 boundary_eval_failed', { requested_capability: 'read' }],
  ['/admin/disclosure/commit', '422 commit_failed', { capabilities: ['read'] }],
];

/** Compares what both routes answer under each agreement: 201, or the cause of the refusal. */
async function assertGrounds(
  na: TestAuthority,
  cases: readonly (readonly [name: string, agreement: JsonObject, expected: string])[],
): Promise<void> {
  for (const [name, agreement, expected] of cases) {
    for (const [route, refusal, rest] of GROUNDED) {
      const answer = await operate(na, route, { agreement, ...rest });
      const wanted = expected === '201' ? '201' : `${refusal} ${expected}`;
      assert.equal(outcomeWithCause(answer), wanted, `${route}: ${name}`);
    }
  }
}

const UNACCEPTED = 'agreement_not_signed_by_other';

test('decisions and commitments require an agreement that the other party signed too', async () => {
  await using na = await startUnlimited();
  const [alpha, beta, gamma] = [ourselves(na), sovereign('beta'), sovereign('gamma')];
  await recognized(na, beta);
  const now = na.clock.now();
  const terms = { agreed_terms: agreedTerms(now, { freshness_commitment: 0 }) };
  const offer = offerBetween(beta, alpha, now, { requested_terms: terms.agreed_terms });
  const counter = counterTo(offer, alpha, now, terms);
  const wrapped = { ...counter, agreement_id: 'wrapped', established_at: formatInstant(now) };
  const ofBeta = (...signers: (typeof beta.key)[]) =>
    agreementBetween(beta, alpha, now, terms, signers);
  const ofGamma = (...signers: (typeof beta.key)[]) =>
    agreementBetween(gamma, alpha, now, terms, signers);
  const stranger = newKey();
  const label = (agreement: JsonObject, key_id: string) => ({
    ...agreement,
    signatures: signaturesOf(agreement).map(({ sig }) => ({ key_id, sig })),
  });
  await assertGrounds(na, [
    ['a counter of ours, wrapped as an agreement', wrapped, UNACCEPTED],
    ['a counter that its offerer accepted', signedAgreement(wrapped, alpha.key, beta.key), '201'],
    ['ours twice', ofBeta(alpha.key, alpha.key), UNACCEPTED],
    ['ours and that of a stranger', ofBeta(alpha.key, stranger), UNACCEPTED],
    ['ours and that of an operator', ofBeta(alpha.key, na.privileged.key), UNACCEPTED],
    ['both, with any labels', label(ofBeta(alpha.key, beta.key), 'x'), '201'],
    [
      'an answer of ours to our own offer',
      agreementBetween(alpha, beta, now, terms, [alpha.key]),
      '201',
    ],
    ['one with ourselves', agreementBetween(alpha, alpha, now, terms, [alpha.key]), '201'],
    [
      'one between two others',
      agreementBetween(beta, gamma, now, terms, [alpha.key]),
      'not_a_party',
    ],
    [
      'one between two others that all three signed',
      agreementBetween(beta, gamma, now, terms, [alpha.key, beta.key, gamma.key]),
      'not_a_party',
    ],
    ['never recognized: both', ofGamma(alpha.key, gamma.key), '201'],
    ['never recognized: ours alone', ofGamma(alpha.key), UNACCEPTED],
    ['never recognized: ours twice', ofGamma(alpha.key, alpha.key), UNACCEPTED],
    [
      'never recognized: under a key that no signature names',
      label(ofGamma(alpha.key, gamma.key), 'gamma-1'),
      UNACCEPTED,
    ],
  ]);
});

test('nothing is decided under an agreement with a sovereign whose treaties have all ended', async () => {
  await using na = await startUnlimited();
  const [alpha, beta] = [ourselves(na), sovereign('beta')];
  const now = na.clock.now();
  const terms = {
    agreed_terms: agreedTerms(now, {
      freshness_commitment: 0,
      valid_until: formatInstant(now + 1000 * HOUR),
    }),
  };
  const agreements = [
    ['of their offer', agreementBetween(beta, alpha, now, terms)],
    ['of our offer', agreementBetween(alpha, beta, now, terms)],
    ['of our offer, answered by us', agreementBetween(alpha, beta, now, terms, [alpha.key])],
  ] as const;
  const all = (expected: string) =>
    assertGrounds(
      na,
      agreements.map(([name, agreement]) => [name, agreement, expected]),
    );
  const revoke = ({ treaty_id }: JsonObject) =>
    operate(na, `/admin/recognition-treaties/${treaty_id}/revoke`, { reason: 'over' });
  await all('201');
  const [first, second] = [await recognized(na, beta), await recognized(na, beta)];
  assert.equal(outcome(await revoke(first)), '200');
  await all('201');
  assert.equal(outcome(await revoke(second)), '200');
  await all('treaty_ended');
  await recognized(na, beta, { validity_hours: 1 });
  await all('201');
  na.clock.advance(HOUR);
  await all('treaty_ended');
  // With another key of beta, its earlier signature no longer counts.
  await recognized(na, beta, { subject_public_keys: [newKey().publicKey] });
  await assertGrounds(na, [[...agreements[0], UNACCEPTED]]);
});

test('who asks and who is asked must be parties of the agreement, if the context names them', async () => {
  const na = await shared();
  const agreement = agreementOf(na);
  for (const member of ['requester_sovereign_id', 'provider_sovereign_id']) {
    for (const [named, expected] of [
      ['alpha', '201'],
      ['beta', '201'],
      ['', '201'],
      [null, '201'],
      ['gamma', '422 boundary_eval_failed context_party_mismatch'],
      ['Beta', '422 boundary_eval_failed context_party_mismatch'],
      ['beta ', '422 boundary_eval_failed context_party_mismatch'],
    ] as const) {
      const answer = await decide(na, agreement, { context: { [member]: named } });
      assert.equal(outcomeWithCause(answer), expected, `${member}: ${named}`);
    }
  }
  const unsigned = { ...agreement, signatures: [] };
  const context = { requester_sovereign_id: 'gamma' };
  assert.equal(
    outcomeWithCause(await decide(na, unsigned, { context })),
    '422 boundary_eval_failed agreement_not_signed_here',
  );
});

test('an agreement that the peer alone accepted needs our signature first', async () => {
  const na = await shared();
  const [alpha, beta] = [ourselves(na), sovereign('beta')];
  const now = na.clock.now();
  const agreed_terms = agreedTerms(now, { freshness_commitment: 0 });
  const theirs = agreementBetween(alpha, beta, now, { agreed_terms }, [beta.key]);
  assert.equal(outcome(await decide(na, theirs)), '422 boundary_eval_failed');
  const cosigned = signedAgreement(theirs, beta.key, alpha.key);
  assert.equal((await created(decide(na, cosigned))).authorized, true);
});

/** For members that are kept verbatim, one change stands for all. */
const VERBATIM = /_evidence\.(?!verdict)/;

test('no signed member of an agreement can be changed unnoticed', async () => {
  const na = await shared();
  const agreement = signedAgreement(agreementOf(na), ourselves(na).key);
  const decided = /^(agreement_id|established_at|expires_at|signatures\.\d+\.key_id)$/;
  await eachOf(mutationsOf(agreement, VERBATIM), async ({ name, path, record }) => {
    const code = outcome(await decide(na, record));
    if (code === '201') {
      const isDefault = name === 'agreed_terms.freshness_commitment left out';
      assert.ok(decided.test(path) || isDefault, name);
    } else {
      assert.ok(
        ['400 invalid_agreement', '422 boundary_eval_failed'].includes(code),
        `${name}: ${code}`,
      );
    }
  });
});

// The request [trust-5-4]

const FAULTS: readonly (readonly [expected: string, change: Change])[] = [
  ['400 missing_boundary_fields missing_agreement', drop('agreement')],
  ['400 missing_boundary_fields missing_requested_capability', drop('requested_capability')],
  ['400 invalid_agreement invalid_agreement', inAgreement(drop('agreed_terms'))],
  ['400 missing_boundary_fields invalid_context', set({ context: 'x' })],
  ['422 boundary_eval_failed agreement_not_signed_here', inAgreement(set({ signatures: [] }))],
];

function inAgreement(change: Change): Change {
  return (body) =>
    body.agreement === undefined ? body : { ...body, agreement: change(inner(body, 'agreement')) };
}

test('a request that is wrong is refused with the code of the first thing wrong with it', async () => {
  const na = await shared();
  const before = audited(na, 'boundary_decision_made').length;
  const body = { agreement: agreementOf(na), requested_capability: 'read' };
  await checkChanges(FAULTS, body, async (spoilt) =>
    outcomeWithCause(await operate(na, DECIDE, spoilt)),
  );
  assert.equal(audited(na, 'boundary_decision_made').length, before);
});

test('each member of the request has a type, and some may not be empty', async () => {
  const na = await shared();
  const given = valuesExcept(
    'null',
    'false',
    'an empty string',
    'an empty list',
    'an empty object',
  );
  const without = (taken: string) => given.filter(([name]) => name !== taken);
  const refused = (cause: string) => `400 missing_boundary_fields ${cause}`;
  const inContext = (member: string, values: readonly (readonly [string, JsonValue])[]) =>
    inEach(
      'context',
      values.map(([name, value]) => [`${member} ${name}`, { [member]: value }] as const),
    );
  const ask = answersTo(na, DECIDE, { agreement: agreementOf(na), requested_capability: 'read' });
  await checkTable<JsonObject>(
    {
      [refused('missing_agreement')]: inEach('agreement', MISSING),
      [refused('missing_requested_capability')]: inEach('requested_capability', MISSING),
      '400 invalid_agreement invalid_agreement': inEach('agreement', given),
      [refused('invalid_requested_capability')]: inEach(
        'requested_capability',
        without('a string'),
      ),
      [refused('invalid_context')]: inEach('context', without('an object')),
      [refused('invalid_context_freshness_seq')]: inContext('context_freshness_seq', [
        ['-1', -1],
        ['-1.0', new JsonFloat(-1)],
        ['2 to the 53', 2n ** 53n],
        ['2 to the 80', 2n ** 80n],
        ['1e300', new JsonFloat(1e300)],
        ['"3"', '3'],
      ]),
      201: {
        ...inEach('context', MISSING),
        'members nobody knows': { context: { requested_at: '2020-01-01T00:00:00Z', other: 5 } },
      },
    },
    ask,
  );
  for (const [member, taken] of CONTEXT_MEMBERS) {
    // A sovereign must be a party of the agreement, too.
    const isParty = member.endsWith('_sovereign_id');
    const outcomeOfTaken = isParty ? '422 boundary_eval_failed context_party_mismatch' : '201';
    await checkTable({ 201: inContext(member, MISSING) }, ask);
    await checkTable({ [refused(`invalid_${member}`)]: inContext(member, without(taken)) }, ask);
    const fitting = given.filter(([name]) => name === taken);
    await checkTable({ [outcomeOfTaken]: inContext(member, fitting) }, ask);
  }
});

/** Members of the context, each with the value of `valuesExcept` that it accepts. */
const CONTEXT_MEMBERS = [
  ['context_id', 'a string'],
  ['parent_kind', 'a string'],
  ['requester_sovereign_id', 'a string'],
  ['provider_sovereign_id', 'a string'],
  ['request_parameters', 'an object'],
  ['context_freshness_seq', 'the integer 7'],
] as const;

test('an empty context id is replaced by a new one each time, and nothing else of the context is returned', async () => {
  const na = await shared();
  const agreement = agreementOf(na);
  const seen = new Set<JsonValue | undefined>();
  for (const context_id of ['', null, false, [], {}]) {
    const decision = await created(decide(na, agreement, { context: { context_id } }));
    assert.match(String(decision.context_id), UUID);
    seen.add(decision.context_id);
  }
  assert.equal(seen.size, 5);
  const context = {
    context_id: 'c',
    parent_kind: 'secret-kind',
    requester_sovereign_id: 'beta',
    provider_sovereign_id: 'alpha',
    request_parameters: { dataset: 'secret-data' },
    requested_at: '2020-01-01T00:00:00Z',
  };
  const answer = await decide(na, agreement, { context });
  assert.equal(answer.body.authorized, true, 'the caller cannot choose the time');
  assert.doesNotMatch(answer.text, /secret/);
});

test('the evidence inside an agreement may block', async () => {
  const na = await shared();
  const [alpha, beta] = [ourselves(na), sovereign('beta')];
  const now = na.clock.now();
  const agreement = agreementBetween(alpha, beta, now, {
    agreed_terms: agreedTerms(now, { freshness_commitment: 0 }),
    offerer_evidence: { verdict: 'block' },
    responder_evidence: { verdict: 'block' },
  });
  assert.equal((await created(decide(na, agreement))).authorized, true);
});

test('an agreement with 16 signatures and 4096 capabilities is accepted, a larger one is not', async () => {
  const na = await shared();
  const long = Array.from({ length: 4097 }, (_, index) => `c${index}`);
  const agreement = agreementOf(na);
  const [signature] = signaturesOf(signedAgreement(agreement, newKey()));
  const signatures = (count: number) => ({
    ...agreement,
    signatures: [...Array(count - 2).fill(signature), ...signaturesOf(agreement)],
  });
  const listed = (capabilities: readonly string[]) => agreementOf(na, { capabilities });
  await checkTable<readonly [agreement: JsonObject, capability: string]>(
    {
      authorized: {
        '16 signatures': [signatures(16), 'read'],
        '4096 capabilities': [listed(long.slice(1)), 'c4096'],
      },
      '400 invalid_agreement': {
        '17 signatures': [signatures(17), 'read'],
        '4097 capabilities': [listed(long), 'c4096'],
      },
    },
    async ([given, capability]) => {
      const answer = await decide(na, given, { requested_capability: capability });
      return answer.body.authorized === true ? 'authorized' : outcome(answer);
    },
  );
});

test('a refused request spends its nonce and changes nothing else', async () => {
  await using na = await startUnlimited();
  const agreement = { ...agreementOf(na), signatures: [] };
  const events = auditEvents(na).length;
  const request = operatorRequest(na, DECIDE, { agreement, requested_capability: 'read' });
  assert.equal(outcome(await sendSigned(na, request)), '422 boundary_eval_failed');
  assert.equal(auditEvents(na).length, events);
  assert.equal(outcome(await sendSigned(na, request)), '401 admin_auth_failed');
});

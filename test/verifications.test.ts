/**
 * What the public verifications share [core-4-11], [core-4-13], [trust-1-1], [trust-1-5], [trust-6]: which keys count,
 * what is refused, that no altered record passes, that nothing is written, what is logged, and the limits. The reasons
 * of each have a file of their own.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isJsonObject, JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import type { Verification } from '../src/protocol/api/verification.ts';
import * as verifications from '../src/protocol/api/verifications.ts';
import { sharedAuthority, startTestAuthority } from './support/authority.ts';
import { MINUTE } from './support/clock.ts';
import { verification as consensusOf, proofBy, v1, v2, votesOf } from './support/consensus.ts';
import { intentBy, policyBy } from './support/data-usage.ts';
import { verification as disclosureOf } from './support/disclosure.ts';
import { FORGED_SIGNATURE, WEAK_KEYS } from './support/hostile.ts';
import { get, outcome, send } from './support/requests.ts';
import { checkFaults, type Fault, inEach } from './support/tables.ts';
import { stateDigest } from './support/test-stores.ts';
import { attest, audited, misspellableKey, parsed, post, sovereign } from './support/trust.ts';
import {
  agreementBetween,
  decisionBy,
  evidence,
  inner,
  keyListCases,
  MISSING,
  mutationsOf,
  ourselves,
  type Party,
} from './support/trust-protocol.ts';
import {
  checkVerdicts,
  entryOf,
  NOW,
  policyOf,
  resultOf,
  us,
  verifier,
} from './support/verifications.ts';

/** A public verification, with a request that is accepted. */
interface Kind {
  readonly verification: Verification;
  /** The members of a verdict, and those of its line in the log. */
  readonly answers: string;
  readonly logs: string;
  /** The request without keys; its records are signed by the parties. */
  bodyBy(now: number, ...parties: readonly [Party, Party]): JsonObject;
  /** The members that are lists of keys: one for each party. */
  readonly keys: readonly string[];
  /** The members of altered requests that may pass, each followed by a blank: nobody signs them, or they are defaults. */
  readonly passes: RegExp;
  /** Members of which some alterations pass. */
  readonly mayPass?: RegExp;
}

/** A verification of the trust protocol. */
interface TrustKind extends Kind {
  /** The reasons if no key of a list fits. */
  readonly reasons: readonly string[];
  readonly good: string;
  /** The members that are records, each with the refusals if it is missing and if it is no such record. */
  readonly records: { readonly [member: string]: readonly [missing: string, invalid: string] };
  /** The refusal of a list of keys that is none. */
  readonly badKeys: string;
}

function refusals(missing: string, invalid: string, member: string): readonly [string, string] {
  return [`400 ${missing} missing_${member}`, `400 ${invalid} invalid_${member}`];
}

const TRUST_KINDS: readonly TrustKind[] = [
  {
    verification: verifications.verifyAgreement,
    answers: 'accepted agreement_id reason',
    logs: 'accepted agreement_id',
    bodyBy: (now, one, other) => ({ agreement: agreementBetween(one, other, now) }),
    keys: ['offerer_public_keys', 'responder_public_keys'],
    reasons: ['invalid_offerer_signature', 'invalid_responder_signature'],
    good: 'accepted',
    records: { agreement: refusals('missing_agreement', 'invalid_agreement', 'agreement') },
    badKeys: '400 invalid_agreement',
    passes: /^agreement\.(agreement_id|established_at|expires_at|signatures\.\d+\.key_id) /,
  },
  {
    verification: verifications.verifyDecision,
    answers: 'accepted authorized decision_id reason',
    logs: 'accepted decision_id',
    bodyBy: (now, operator) => ({ decision: decisionBy(operator, now) }),
    keys: ['operator_public_keys'],
    reasons: ['invalid_signature'],
    good: 'authorized',
    records: { decision: refusals('missing_decision', 'invalid_decision', 'decision') },
    badKeys: '400 invalid_decision',
    passes: /^decision\.(signature\.key_id|denial_reason left out$)/,
  },
  {
    verification: verifications.verifyEvidence,
    answers: 'accepted evidence_id issuer_sovereign_id reason verdict',
    logs: 'accepted evidence_id',
    bodyBy: (now, issuer, target) => ({ evidence: evidence(issuer, target, now) }),
    keys: ['issuer_public_keys'],
    reasons: ['invalid_signature'],
    good: 'accepted',
    records: { evidence: refusals('missing_evidence', 'invalid_evidence', 'evidence') },
    badKeys: '400 invalid_evidence',
    passes: /^evidence\.signatures\.\d+\.key_id /,
  },
  {
    verification: verifications.verifyMembership,
    answers: 'commitment_id reason valid',
    logs: 'commitment_id valid',
    bodyBy: (now, issuer) => ({ ...disclosureOf(issuer, now) }),
    keys: ['issuer_public_keys'],
    reasons: ['commitment_invalid_signature'],
    good: 'valid',
    records: {
      proof: refusals('missing_verify_fields', 'invalid_input', 'proof'),
      commitment: refusals('missing_verify_fields', 'invalid_input', 'commitment'),
    },
    badKeys: '400 invalid_input',
    passes: /^(commitment\.signature\.key_id|proof\.(proof_id|prover_sovereign_id|proved_at)) /,
  },
  {
    verification: verifications.verifyConsensus,
    answers: 'consensus_id reason valid',
    logs: 'consensus_id valid',
    bodyBy: (now, assembler) => ({
      proof: proofBy(assembler, now, { votes: votesOf(now, [v1, v2]) }),
      validator_public_keys: inner(consensusOf(now), 'validator_public_keys'),
    }),
    keys: ['assembler_public_keys'],
    reasons: ['invalid_assembler_signature'],
    good: 'valid',
    records: { proof: refusals('missing_proof', 'invalid_proof', 'proof') },
    badKeys: '400 invalid_proof',
    passes: /^(proof\.signature\.key_id|validator_public_keys\.val-3) /,
  },
  {
    verification: verifications.verifyIntent,
    answers: 'valid violation_count violation_reason violations',
    logs: 'intent_id valid violation_count',
    bodyBy: (now, agent, licensor) => ({
      intent: intentBy(agent, now),
      policy: policyBy(licensor, now),
    }),
    keys: ['agent_public_keys'],
    reasons: ['intent_exceeds_license'],
    good: 'valid',
    records: {
      intent: refusals('missing_verify_fields', 'invalid_input', 'intent'),
      policy: refusals('missing_verify_fields', 'invalid_input', 'policy'),
    },
    badKeys: '400 invalid_input',
    passes: /^intent\.signature\.key_id /,
    mayPass: /^policy\./,
  },
];

/** Members of treaties and attestations here have their default values, so that leaving them out changes nothing. */
const RECOGNITION_PASSES =
  /^(attestation|treaty)\.(signatures\.0\.key_id |(status|subject_public_key|claims|metadata) left out$)/;

const RECOGNITION_KINDS: readonly Kind[] = [
  {
    verification: verifications.verifyAttestation,
    answers: 'accepted attestation_id issuer_sovereign_id reason',
    logs: 'accepted attestation_id issuer_sovereign_id reason',
    bodyBy: (now, issuer) => ({
      attestation: sovereign(issuer.name, issuer.key).attestation(now),
      recognition_policy: policyOf(entryOf(sovereign(issuer.name, issuer.key))),
    }),
    keys: [],
    passes: RECOGNITION_PASSES,
    mayPass: /^recognition_policy\./,
  },
  {
    verification: verifications.verifyTreaty,
    answers: 'accepted issuer_sovereign_id reason subject_sovereign_id treaty_id trust_basis',
    logs: 'accepted issuer_sovereign_id reason subject_sovereign_id treaty_id',
    bodyBy: (now, issuer, subject) => ({ treaty: treatyBetween(now, issuer, subject) }),
    keys: ['issuer_public_keys'],
    passes: RECOGNITION_PASSES,
  },
  {
    verification: verifications.verifyAttestationWithTreaty,
    answers:
      'accepted attestation_id issuer_sovereign_id reason subject_sovereign_id treaty_id trust_basis',
    logs: 'accepted attestation_id reason subject_sovereign_id treaty_id',
    bodyBy: (now, issuer, subject) => ({
      attestation: sovereign(subject.name, subject.key).attestation(now),
      treaty: treatyBetween(now, issuer, subject),
    }),
    keys: ['treaty_issuer_public_keys'],
    passes: RECOGNITION_PASSES,
  },
];

const KINDS = [...TRUST_KINDS, ...RECOGNITION_KINDS];

function treatyBetween(now: number, issuer: Party, { name, key }: Party): JsonObject {
  const scope = {
    allowed_roles: ['role:client'],
    accepted_statuses: ['active', 'revoked'],
    claims: { region: 'eu' },
  };
  return sovereign(issuer.name, issuer.key).treaty(now, sovereign(name, key), { scope });
}

const beta = sovereign('beta', misspellableKey());
const gamma = sovereign('gamma', misspellableKey());

/** The request with the keys of its parties. */
function requestOf({ bodyBy, keys }: Kind, now: number, ...parties: [Party, Party]): JsonObject {
  const lists = keys.map((member, index) => [member, [parties[index]?.key.publicKey ?? '']]);
  return { ...bodyBy(now, ...parties), ...Object.fromEntries(lists) };
}

test('every public verification is among these', () => {
  const declared = Object.values(verifications);
  assert.deepEqual(new Set(KINDS.map(({ verification }) => verification)), new Set(declared));
});

for (const kind of TRUST_KINDS) {
  const { verification, keys, reasons, good, records, badKeys } = kind;
  const { path } = verification;

  test(`${path} uses only the keys that it is given, and without any those of the authority`, async () => {
    for (const [index, member] of keys.entries()) {
      const reason = reasons[index] ?? '';
      const theirs = requestOf(kind, NOW, beta, gamma);
      const parties: [Party, Party] = index === 0 ? [us, gamma] : [beta, us];
      const { [member]: _, ...ours } = requestOf(kind, NOW, ...parties);
      const { [member]: __, ...withoutKeys } = theirs;
      const right = index === 0 ? beta.key : gamma.key;
      const by = verifier({
        askRevocations: () => assert.fail('no treaty gives keys'),
      });
      for (const [name, list, result] of keyListCases(right)) {
        const malformed = `${badKeys} ${name === '33 keys' ? 'too_many_keys' : 'invalid_keys'}`;
        const expected = { verifies: good, fails: reason, malformed }[result];
        const answer = await resultOf(verification, { ...theirs, [member]: list }, by);
        assert.equal(answer, expected, `${member}: ${name}`);
      }
      await checkVerdicts(verification, {
        [good]: { 'ours, no list': ours, 'ours, null': { ...ours, [member]: null } },
        [reason]: {
          'ours, an empty list': { ...ours, [member]: [] },
          'theirs, no list': withoutKeys,
          'theirs, null': { ...theirs, [member]: null },
        },
      });
    }
  });

  test(`${path} accepts no signature that a weak key would verify`, async () => {
    const request = requestOf(kind, NOW, beta, gamma);
    const member = Object.keys(records).at(verification.path === '/data-usage/verify' ? 0 : -1);
    const record = inner(request, member ?? '');
    const item = { key_id: 'weak', sig: FORGED_SIGNATURE };
    const forged = 'signature' in record ? { signature: item } : { signatures: [item] };
    for (const weak of WEAK_KEYS) {
      const lists = Object.fromEntries(keys.map((name) => [name, [weak]]));
      const body = { ...request, [member ?? '']: { ...record, ...forged }, ...lists };
      assert.equal(await resultOf(verification, body), reasons[0], weak);
    }
  });

  test(`${path} refuses what it cannot verify, in the order of the contract`, async () => {
    const request = requestOf(kind, NOW, beta, gamma);
    const members = Object.entries(records);
    await checkFaults(
      [
        ...members.map(([member, [missing]]): Fault<JsonObject> => [missing, { [member]: null }]),
        ...members.map(
          ([member, [, invalid]]): Fault<JsonObject> => [invalid, { [member]: { any: 1 } }],
        ),
        ...keys.map((member): Fault<JsonObject> => [`${badKeys} invalid_keys`, { [member]: 5 }]),
      ],
      (draft) => resultOf(verification, { ...request, ...draft }),
    );
    for (const [member, [missing, invalid]] of members) {
      const { [member]: record = null, ...without } = request;
      await checkVerdicts(verification, { [missing]: { [`no ${member}`]: without } });
      await checkVerdicts(
        verification,
        {
          [missing]: inEach(member, MISSING),
          [invalid]: inEach(member, [
            ['text', 'text'],
            ['a list', [record]],
            ['true', true],
            ['a float', new JsonFloat(1.5)],
          ]),
        },
        request,
      );
    }
  });
}

for (const kind of KINDS) {
  const { verification, passes, mayPass } = kind;
  const codes = verification.refusals?.join('|');

  test(`${verification.path} accepts no altered record, and fails at none`, async () => {
    const refused = new RegExp(`^4(00|22) (${codes})( |$)`);
    const request = requestOf(kind, NOW, beta, gamma);
    const good = await resultOf(verification, request);
    for (const { name, record } of mutationsOf(request)) {
      const result = await resultOf(verification, record);
      if (refused.test(result) || mayPass?.test(name)) continue;
      assert.doesNotMatch(result, /^\d/, name);
      assert.equal(result === good, passes.test(name), `${name}: ${result}`);
    }
  });
}

// The routes

const shared = sharedAuthority();

for (const kind of KINDS) {
  const { verification } = kind;
  const { path, event } = verification;

  test(`${path} answers like this, writes nothing, and logs each verdict`, async () => {
    const na = await shared();
    const now = na.clock.now();
    const by = verifier({ now, uuid: () => '', ownKeys: () => [na.audience] });
    const ours = requestOf(kind, now, ourselves(na, 'zeta'), gamma);
    const theirs = { ...ours, ...kind.bodyBy(now, beta, gamma) };
    await na.flush();
    const before = await stateDigest(na);
    const logged: JsonObject[] = [];
    for (const request of kind.keys.length === 0 ? [ours] : [ours, theirs]) {
      const { verdict, logged: details } = await verification.judge(request, by);
      const answer = await post(na, path, request);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(Object.keys(answer.body).sort().join(' '), kind.answers);
      assert.equal(Object.keys(details).sort().join(' '), kind.logs);
      assert.equal(details.accepted ?? details.valid, request === ours);
      assertIdsOf(request, { ...answer.body, ...details });
      const { violations, ...rest } = parsed(answer);
      const { violations: expected, ...others } = verdict as JsonObject;
      assert.deepEqual(rest, others);
      assert.equal(JSON.stringify(violations)?.length > 2, JSON.stringify(expected)?.length > 2);
      logged.push(details);
    }
    assert.deepEqual(audited(na, event), logged);
    const { text } = await get(na, '/metrics');
    for (const accepted of logged.map((details) => details.accepted ?? details.valid)) {
      const counted = `mesh_na_verifications_total{event="${event}",accepted="${accepted}"} 1`;
      assert.ok(text.split('\n').includes(counted), counted);
    }
    const [first = ''] = Object.keys(ours);
    const { [first]: _, ...incomplete } = ours;
    for (const [body, expected] of [
      ['no json', /^400 invalid_json$/],
      ['[]', /^400 invalid_json_object$/],
      ['', /^400 missing_/],
      [jsonText({ ...incomplete, [first]: 'text' }), /^4(00|22) invalid_/],
    ] as const) {
      assert.match(outcome(await send(na, 'POST', path, { body })), expected);
    }
    await na.flush();
    assert.equal(await stateDigest(na), before);
    assert.deepEqual(audited(na, event), logged);
  });
}

/** Each id of a verdict is that of a record in the request. */
function assertIdsOf(request: JsonObject, verdict: JsonObject): void {
  const records = Object.values(request).filter((value) => isJsonObject(value));
  for (const [name, value] of Object.entries(verdict)) {
    if (!name.endsWith('_id')) continue;
    assert.ok(
      records.some((record) => record[name] === value),
      name,
    );
  }
}

test('a digest of the state shows what is written', async () => {
  const na = await shared();
  const before = await stateDigest(na);
  await attest(na);
  assert.notEqual(await stateDigest(na), before);
});

test('each verification has a limit of its own for an address, whatever is sent', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_VERIFY: '3/60' } });
  const now = na.clock.now();
  for (const kind of KINDS) {
    const { path } = kind.verification;
    const bodies = [jsonText(requestOf(kind, now, beta, gamma)), '{}', 'no json'];
    for (const [index, body] of bodies.entries()) {
      const { status } = await send(na, 'POST', path, { body });
      assert.equal(status, index === 0 ? 200 : 400, path);
    }
    for (const body of bodies) {
      const limited = await send(na, 'POST', path, { body });
      assert.equal(outcome(limited), '429 rate_limit_exceeded');
      assert.equal(limited.headers.get('retry-after'), '60');
    }
  }
  na.clock.advance(MINUTE);
  for (const { verification } of KINDS) {
    assert.equal((await post(na, verification.path, {})).status, 400);
  }
});

test('by default the limit is 60 requests a minute', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_VERIFY: '' } });
  for (let n = 0; n < 60; n += 1) {
    assert.equal((await post(na, '/attestations/verify', {})).status, 400, `request ${n + 1}`);
  }
  assert.equal((await post(na, '/attestations/verify', {})).status, 429);
});

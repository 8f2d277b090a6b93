/** The cost that a stranger can cause with a public verification, and that honest records of any size still verify. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import type { Signer, VerifySignature } from '../src/base/crypto/primitives.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { readAgreementRecord, verifyAgreement } from '../src/protocol/records/agreement.ts';
import {
  readMembershipAttestation,
  readRecognitionPolicy,
  readRecognitionTreaty,
  verifyAttestation,
  verifyAttestationWithTreaty,
} from '../src/protocol/records/recognition.ts';
import type { SignatureItem } from '../src/protocol/records/record.ts';
import { isSignedByAny } from '../src/protocol/records/signed-record.ts';
import { readTrustEvidence, verifyTrustEvidence } from '../src/protocol/records/trust-evidence.ts';
import { sharedAuthority } from './support/authority.ts';
import { namesOf, proofBy, keysOf as validatorKeysOf, voteOf } from './support/consensus.ts';
import { cpuOf } from './support/cpu.ts';
import { commitmentBy } from './support/disclosure.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { parsed, post, signedBy, sovereign } from './support/trust.ts';
import {
  agreedTerms,
  agreementBetween,
  counterTo,
  evidence,
  offerBetween,
  ourselves,
  outcomeWithCause,
  recognized,
  resigned,
  signaturesOf,
  signedAgreement,
  singlySigned,
} from './support/trust-protocol.ts';

const shared = sharedAuthority();

const NOW = Date.UTC(2026, 0, 15, 12);
const POLICY = { local_sovereign_id: 'alpha' };

/** Far more than the checks take on a busy machine, and far less than comparing all pairs would take. */
const CPU_LIMIT = 1500;

/** Enough that comparing them pairwise takes many seconds. */
const ROLES = Array.from({ length: 100_000 }, (_, index) => `r${index}`);

test('100,000 roles against as many allowed ones, in the opposite order, take no time', async () => {
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const allowed_roles = [...ROLES].reverse();
  const attestation = readMembershipAttestation(beta.attestation(NOW, { roles: ROLES }));
  const scope = { allowed_roles, accepted_statuses: ['active'], claims: {} };
  const treaty = readRecognitionTreaty(gamma.treaty(NOW, beta, { scope }));
  assert.ok(attestation !== null && treaty !== null);
  const issuer = { sovereign_id: 'beta', public_keys: [beta.key.publicKey], allowed_roles };
  const policy = readRecognitionPolicy({ ...POLICY, recognized_issuers: [issuer] });
  assert.ok(policy !== null);
  const known = {
    treatyIssuerKeys: [gamma.key.publicKey],
    treatyRevoked: false,
    attestationRevoked: false,
  };
  let reasons: string[] = [];
  const cpu = await cpuOf(() => {
    reasons = [
      verifyAttestation(attestation, policy, NOW, verifySignature),
      verifyAttestationWithTreaty(attestation, treaty, known, NOW, verifySignature),
    ];
  });
  assert.deepEqual(reasons, ['accepted', 'accepted']);
  assert.ok(cpu < CPU_LIMIT, `${cpu} ms of CPU`);
});

test('one role too many among thousands is still found', async () => {
  const na = await shared();
  const now = na.clock.now();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const roles = ROLES.slice(0, 10_000);
  const attestation = beta.attestation(now, { roles: [...roles, 'another'] });
  const issuer = {
    sovereign_id: 'beta',
    public_keys: [beta.key.publicKey],
    allowed_roles: roles,
  };
  const scope = { allowed_roles: roles, accepted_statuses: ['active'], claims: {} };
  const byPolicy = await post(na, '/attestations/verify', {
    attestation,
    recognition_policy: { ...POLICY, recognized_issuers: [issuer] },
  });
  const byTreaty = await post(na, '/attestations/verify-with-treaty', {
    attestation,
    treaty: gamma.treaty(now, beta, { scope }),
    treaty_issuer_public_keys: [gamma.key.publicKey],
  });
  assert.equal(byPolicy.body.reason, 'role_not_allowed');
  assert.equal(byTreaty.body.reason, 'attestation_role_not_allowed');
});

/** Verifies, and records the text of each check. */
function counting() {
  const texts: (string | Uint8Array)[] = [];
  const verify: VerifySignature = (publicKey, text, signature) => {
    texts.push(text);
    return verifySignature(publicKey, text, signature);
  };
  /** The cost of the checks: each one counts the elliptic-curve arithmetic and the length of its text. */
  const cost = () => texts.reduce((sum, text) => sum + 16 * 1024 + text.length, 0);
  return { verify, texts, cost };
}

const BUDGET = 10 * 1024 * 1024;
const [ALPHA, BETA] = [sovereign('alpha'), sovereign('beta')];
const MANY_KEYS = Array.from({ length: 31 }, () => newKey().publicKey);

function evidenceOf(size: number, signers: readonly Signer[]) {
  const record = evidence(ALPHA, BETA, NOW, { metadata: { x: 'x'.repeat(size) } });
  const read = readTrustEvidence(resigned(record, ...signers));
  assert.ok(read !== null);
  return read;
}

/** Signatures whose ids match no key. */
function unlabeled<T extends { readonly signatures: readonly SignatureItem[] }>(record: T): T {
  return { ...record, signatures: record.signatures.map(({ sig }) => ({ key_id: 'na', sig })) };
}

test('signatures, keys and text together stay within one budget, for any size of text', () => {
  const strangers = Array.from({ length: 16 }, newKey);
  for (const size of [0, 10_000, 100_000, 450_000]) {
    const { verify, cost } = counting();
    const read = unlabeled(evidenceOf(size, strangers));
    assert.equal(verifyTrustEvidence(read, MANY_KEYS, null, verify), 'invalid_signature');
    assert.ok(cost() <= BUDGET, `${size}: ${cost()} bytes`);
  }
});

test('both parties of an agreement, and a treaty with its attestation, share the budget', () => {
  const strangers = Array.from({ length: 15 }, newKey);
  const terms = agreedTerms(NOW, { scope: { x: 'x'.repeat(100_000) } });
  const signed = agreementBetween(ALPHA, BETA, NOW, { agreed_terms: terms }, [
    ...strangers,
    ALPHA.key,
  ]);
  const agreement = readAgreementRecord(signed);
  assert.ok(agreement !== null);
  const both = counting();
  const offerer = [...MANY_KEYS, ALPHA.key.publicKey];
  const reason = verifyAgreement(agreement, offerer, MANY_KEYS, both.verify);
  assert.equal(reason, 'invalid_responder_signature');
  assert.ok(both.cost() <= BUDGET, `${both.cost()} bytes`);

  const large = { x: 'x'.repeat(100_000) };
  const attestation = readMembershipAttestation(
    signedBy(BETA.attestation(NOW, { claims: large }), ...strangers),
  );
  const subject_public_keys = MANY_KEYS;
  const treaty = readRecognitionTreaty(
    ALPHA.treaty(NOW, BETA, { subject_public_keys, metadata: large }),
  );
  assert.ok(attestation !== null && treaty !== null);
  const treatyIssuerKeys = [...MANY_KEYS, ALPHA.key.publicKey];
  const known = { treatyIssuerKeys, treatyRevoked: false, attestationRevoked: false };
  const chain = counting();
  const unknown = unlabeled(attestation);
  const verdict = verifyAttestationWithTreaty(unknown, treaty, known, NOW, chain.verify);
  assert.equal(verdict, 'attestation_invalid_signature');
  assert.ok(chain.cost() <= BUDGET, `${chain.cost()} bytes`);
});

test('the matching pair is tried first, by its key or by the id of the key', () => {
  const strangers = Array.from({ length: 15 }, newKey);
  const record = evidenceOf(400_000, [...strangers, ALPHA.key]);
  const { publicKey } = ALPHA.key;
  const byKey = counting();
  assert.ok(isSignedByAny(record, [...MANY_KEYS, publicKey], byKey.verify));
  assert.equal(byKey.texts.length, 1);

  const named = record.signatures.map(({ sig }, index) => ({ key_id: `k${index}`, sig }));
  const ids = new Map<string, string>(MANY_KEYS.map((key, index) => [`other ${index}`, key]));
  const byId = counting();
  const keys = ids.set('k15', publicKey);
  assert.ok(isSignedByAny({ ...record, signatures: named }, keys, byId.verify));
  assert.equal(byId.texts.length, 1);
});

test('repeated keys and signatures are tried once, over a text that is encoded once', () => {
  const { publicKey } = newKey();
  const record = evidenceOf(
    1000,
    Array.from({ length: 16 }, () => ALPHA.key),
  );
  const repeated = counting();
  const keys = Array.from({ length: 32 }, () => publicKey);
  assert.equal(isSignedByAny(record, keys, repeated.verify), false);
  assert.equal(repeated.texts.length, 1);

  const each = counting();
  assert.equal(isSignedByAny(record, [publicKey, newKey().publicKey], each.verify), false);
  assert.equal(each.texts.length, 2);
  assert.equal(new Set(each.texts).size, 1);
});

test('16 signatures and 32 keys of an ordinary record are all tried', () => {
  const record = unlabeled(evidenceOf(3000, [...Array.from({ length: 15 }, newKey), ALPHA.key]));
  const keys = [...MANY_KEYS, ALPHA.key.publicKey];
  assert.equal(verifyTrustEvidence(record, keys, null, verifySignature), 'accepted');
});

test('an offer and its counter share half the budget on the authority', async () => {
  const na = await shared();
  const now = na.clock.now();
  const us = ourselves(na);
  await recognized(na, BETA, { subject_public_keys: [...MANY_KEYS.slice(1), BETA.key.publicKey] });
  const terms = agreedTerms(now, { scope: { x: 'x'.repeat(50_000) } });
  const offer = offerBetween(us, BETA, now, { requested_terms: terms });
  const genuine = counterTo(offer, BETA, now, { agreed_terms: terms });
  const others = Array.from({ length: 14 }, newKey);
  const among = signedAgreement(genuine, ...others, BETA.key);
  const accept = (counter: JsonObject) =>
    operate(na, '/admin/agreements/accept', { counter, original_offer: offer });
  assert.equal(outcome(await accept(among)), '201', 'the pair that fits is tried first');
  const nameless = signaturesOf(among).map(({ sig }) => ({ key_id: 'beta', sig }));
  assert.equal(
    outcomeWithCause(await accept({ ...among, signatures: nameless })),
    '422 accept_rejected invalid_counter_signature',
  );
});

test('one signature and one key suffice for a text beyond the whole budget', () => {
  const record = unlabeled(evidenceOf(11 * 1024 * 1024, [ALPHA.key]));
  const keys = [ALPHA.key.publicKey];
  assert.equal(verifyTrustEvidence(record, keys, null, verifySignature), 'accepted');
  assert.equal(
    verifyTrustEvidence(record, [...keys, ...MANY_KEYS], null, verifySignature),
    'accepted',
  );
});

test('honest records of the greatest size are verified over HTTP', async (t) => {
  const na = await shared();
  const now = na.clock.now();
  const capabilities = Array.from(
    { length: 4096 },
    (_, index) => `dataset:${String(index).padStart(6, '0')}:${'read-'.repeat(18)}`,
  );
  await t.test('an agreement of 4,096 capabilities, 16 signatures and 32 keys a side', async () => {
    const agreed_terms = agreedTerms(now, { capabilities });
    const others = Array.from({ length: 14 }, newKey);
    const agreement = agreementBetween(ALPHA, BETA, now, { agreed_terms }, [
      ...others,
      BETA.key,
      ALPHA.key,
    ]);
    const answer = await post(na, '/agreements/verify', {
      agreement,
      offerer_public_keys: [...MANY_KEYS, ALPHA.key.publicKey],
      responder_public_keys: [...MANY_KEYS, BETA.key.publicKey],
    });
    assert.equal(answer.body.reason, 'accepted', answer.text);
  });
  await t.test('a capability among 4,096', async () => {
    const commitment = commitmentBy(ALPHA, now, capabilities);
    const proof = await post(na, '/disclosure/prove', {
      capability: capabilities[4095] ?? '',
      capabilities,
      commitment,
      prover_sovereign_id: 'alpha',
    });
    assert.equal(proof.status, 200, proof.text);
    const issuer_public_keys = [ALPHA.key.publicKey];
    const body = { proof: parsed(proof), commitment, issuer_public_keys };
    assert.equal((await post(na, '/disclosure/verify', body)).body.reason, 'valid');
  });
  await t.test('256 votes, with 32 keys of assemblers that no id distinguishes', async () => {
    const validators = Array.from({ length: 256 }, (_, index) => sovereign(`validator-${index}`));
    const proof = proofBy(ALPHA, now, {
      required_threshold: 256,
      validator_sovereign_ids: namesOf(validators),
      votes: validators.map((voter, index) => voteOf(voter, now, { after: 60 * index })),
    });
    const answer = await post(na, '/consensus/verify', {
      proof: singlySigned(proof, ALPHA.key, 'na'),
      validator_public_keys: validatorKeysOf(validators),
      assembler_public_keys: [...MANY_KEYS, ALPHA.key.publicKey],
    });
    assert.equal(answer.body.reason, 'valid', answer.text);
  });
});

test('names that a stranger gives in a verification are truncated in the log', async () => {
  const na = await shared();
  const record = BETA.attestation(na.clock.now(), { attestation_id: 'x'.repeat(100_000) });
  const issuer = { sovereign_id: 'beta', public_keys: [BETA.key.publicKey] };
  const answer = await post(na, '/attestations/verify', {
    attestation: record,
    recognition_policy: { ...POLICY, recognized_issuers: [issuer] },
  });
  assert.equal(answer.body.accepted, true);
  assert.equal(answer.body.attestation_id.length, 100_000);
  const line = na.logLines.findLast((one) => one.includes('membership_attestation_verified'));
  assert.ok(line !== undefined && line.length < 1000, line);
});

/**
 * The trust protocol with the client library, imported the way another package does: our operator over HTTP, the other
 * sovereign with only its key and the record builders.
 */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { AuthorityError } from '../src/client/authority-error.ts';
import { keyFromSeed, newSeed, recordSigner, verifyText } from '../src/client/keys.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { acceptOffer, buildCounter, verifyAgreement } from '../src/protocol/records/agreement.ts';
import { verifyBoundaryDecision } from '../src/protocol/records/boundary-decision.ts';
import { verifyMembership } from '../src/protocol/records/capability-disclosure.ts';
import { verifyConsensusProof } from '../src/protocol/records/consensus-proof.ts';
import { buildAccessIntent } from '../src/protocol/records/data-usage.ts';
import type { Issuer } from '../src/protocol/records/issuer.ts';
import { buildTrustEvidence, verifyTrustEvidence } from '../src/protocol/records/trust-evidence.ts';
import { buildValidatorVote } from '../src/protocol/records/validator-vote.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';

/**
 * Our operator, an anonymous client, and the sovereign beta, which alpha recognizes and which does not run a service.
 */
async function parties(na: TestAuthority) {
  const now = na.clock.now();
  const operator = createOperatorClient({
    url: na.url,
    audience: na.audience,
    keyId: 'ops-privileged',
    key: keyFromSeed(readKeyFile(join(na.dataDir, 'keys', 'operator-privileged.key'))),
    now: () => na.clock.now(),
  });
  const signer = recordSigner(newSeed());
  const beta: Issuer = {
    sovereignId: 'beta',
    keyId: signer.publicKey,
    signer,
    sha256: SHA256,
    now,
    uuid: () => crypto.randomUUID(),
  };
  await operator.issueTreaty({
    subject_sovereign_id: 'beta',
    subject_public_keys: [signer.publicKey],
  });
  const anyone = createPublicClient({ url: na.url });
  const window = { valid_from: formatInstant(now), valid_until: formatInstant(now + HOUR) };
  return { operator, beta, betaKeys: [signer.publicKey], ourKeys: [na.audience], anyone, window };
}

const OPINION = {
  source_sovereign_id: 'beta',
  target_sovereign_id: 'alpha',
  verdict: 'allow' as const,
  reason: 'known for long',
  requested_roles: [],
  trusted: true,
  hop_count: 1,
  signals: [],
  evaluated_at: '2026-01-15T12:00:00+00:00',
};

test('an agreement can be concluded over HTTP and offline, and carries decisions and proofs', async () => {
  await using na = await startTestAuthority();
  const { operator, beta, betaKeys, ourKeys, anyone, window } = await parties(na);
  const now = na.clock.now();

  const offer = await operator.offerCapabilities({
    responder_sovereign_id: 'beta',
    capabilities: ['read', 'écrire'],
    ...window,
    expires_at: window.valid_until,
  });
  const opinion = buildTrustEvidence(beta, OPINION, 'sha256:00');
  const terms = { capabilities: ['read'], scope: {}, ...window };
  const counter = buildCounter(beta, offer, terms, opinion);
  assert.ok('signatures' in counter);
  const agreement = await operator.acceptAgreement({ counter, original_offer: offer });
  assert.equal(verifyAgreement(agreement, ourKeys, betaKeys, verifyText), 'accepted');
  const keys = { offerer_public_keys: ourKeys, responder_public_keys: betaKeys };
  assert.equal((await anyone.verifyAgreement({ agreement, ...keys })).reason, 'accepted');
  const { reason } = await anyone.verifyAgreement({
    agreement: acceptOffer(beta, offer, opinion),
    ...keys,
  });
  assert.equal(reason, 'invalid_offerer_signature');
  const ours = await operator.counterOffer({ offer, capabilities: ['read'], ...window });
  assert.equal(ours.offer_id, offer.offer_id);

  const decision = await operator.decideBoundary({
    agreement,
    requested_capability: 'écrire',
    context: { context_id: 'ctx-1', context_freshness_seq: 7 },
  });
  const denied = {
    accepted: true,
    authorized: false,
    reason: 'unauthorized_capability_out_of_scope',
  };
  assert.deepEqual(verifyBoundaryDecision(decision, ourKeys, now, verifyText), denied);
  const { decision_id } = decision;
  assert.deepEqual(await anyone.verifyDecision({ decision }), { ...denied, decision_id });

  const commitment = await operator.commitCapabilities({ capabilities: ['read'], agreement });
  const proof = await anyone.proveMembership({
    capability: 'read',
    capabilities: ['read'],
    commitment,
    prover_sovereign_id: 'beta',
  });
  assert.equal(verifyMembership(proof, commitment, ourKeys, verifyText, SHA256), 'valid');
  assert.equal((await anyone.verifyMembership({ proof, commitment })).valid, true);
  assert.equal((await operator.nullifyProof({ proof })).proof_id, proof.proof_id);
  await assert.rejects(operator.nullifyProof({ proof }), (error) => {
    assert.ok(error instanceof AuthorityError);
    assert.deepEqual([error.status, error.code], [422, 'nullifier_failed']);
    return error.details.cause === 'already_issued';
  });
});

test('evidence, consensus and data usage are created and verified on both sides', async () => {
  await using na = await startTestAuthority();
  const { operator, beta, betaKeys, ourKeys, anyone, window } = await parties(na);
  const now = na.clock.now();

  const evidence = await operator.buildEvidence({ decision: OPINION });
  assert.equal(
    verifyTrustEvidence(evidence, ourKeys, evidence.graph_digest, verifyText),
    'accepted',
  );
  const asked = { evidence: buildTrustEvidence(beta, OPINION, 'sha256:00') };
  assert.equal((await anyone.verifyEvidence(asked)).reason, 'invalid_signature');
  const known = { ...asked, issuer_public_keys: betaKeys, expected_graph_digest: 'sha256:00' };
  assert.equal((await anyone.verifyEvidence(known)).issuer_sovereign_id, 'beta');

  const justification = {
    proof_id: 'proof-1',
    decision_id: 'decision-1',
    trace: {
      trace_id: 'trace-1',
      decision_id: 'decision-1',
      agreement_id: 'agreement-1',
      operator_sovereign_id: 'alpha',
      traced_at: window.valid_from,
      entries: [],
      short_circuited_at: null,
      final_authorized: true,
    },
    proof_issued_at: window.valid_from,
    issuer_sovereign_id: 'auditor',
    signature: null,
  };
  const votes = [
    await operator.castVote({ justification_proof: justification, vote: true, reason: null }),
    buildValidatorVote(beta, justification, true, 'seen'),
  ];
  const proof = await operator.assembleConsensus({
    justification_proof: justification,
    votes,
    required_threshold: 2,
    validator_sovereign_ids: ['alpha', 'beta'],
  });
  const validators = { alpha: na.audience, beta: beta.signer.publicKey };
  const answer = await anyone.verifyConsensus({ proof, validator_public_keys: validators });
  assert.deepEqual(answer, { valid: true, reason: 'valid', consensus_id: proof.consensus_id });
  const validatorKeys = new Map(Object.entries(validators));
  assert.equal(verifyConsensusProof(proof, validatorKeys, ourKeys, now, verifyText), 'valid');
  assert.equal(
    verifyConsensusProof(proof, validatorKeys, ourKeys, now + HOUR, verifyText),
    'expired',
  );

  assert.equal(await anyone.licensePolicy(), null);
  const policy = await operator.createLicensePolicy({
    licensee_sovereign_id: 'beta',
    allowed_source_ids: ['src-1'],
    allowed_access_types: [],
    max_volume_bytes_per_session: 1000,
    ...window,
  });
  assert.deepEqual(await anyone.licensePolicy(), policy);
  const source = { source_id: 'src-1', source_type: 'public', owner_sovereign_id: 'alpha' };
  const intent = await operator.declareIntent({ sources: [source], access_types: ['read'] });
  assert.equal((await anyone.verifyIntent({ intent, policy })).violation_reason, null);
  const foreign = buildAccessIntent(beta, {
    sources: [{ ...source, classification_tags: [] }],
    access_types: ['read'],
    decision_id: null,
    estimated_volume_bytes: 1001,
  });
  const verdict = await anyone.verifyIntent({
    intent: foreign,
    policy,
    agent_public_keys: betaKeys,
  });
  assert.deepEqual(
    verdict.violations.map(({ violation_type }) => violation_type),
    ['volume_cap_exceeded'],
  );
});

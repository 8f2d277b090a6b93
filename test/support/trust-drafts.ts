/** Random content for trust-protocol records, and keys and builders for signed ones. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { SHA256 } from '../../src/base/crypto/digest.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../../src/base/json/value.ts';
import { compareCodePoints } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import {
  type CapabilityMembershipProof,
  proveMembership,
} from '../../src/protocol/records/capability-disclosure.ts';
import { merkleRoot } from '../../src/protocol/records/capability-tree.ts';
import type { ConsensusProof } from '../../src/protocol/records/consensus-proof.ts';
import { signRecord, signSingly, soleSigner } from '../../src/protocol/records/signed-record.ts';
import type { ValidatorVote } from '../../src/protocol/records/validator-vote.ts';
import { anyText } from './any-text.ts';
import { newKey } from './requests.ts';

export const NOW = Date.UTC(2026, 0, 15, 12);
/** Later than any test; there are two, so that one can be replaced by the other. */
export const FAR = ['2098-01-01T00:00:00Z', '2098-01-01T00:00:00.000001Z'] as const;
export const SIGNER = newKey();
export const STRANGER = newKey();
export const OWN_KEY = [SIGNER.publicKey];
const VALIDATORS = ['val-1', 'val-2', 'val-3', 'val-4'] as const;
const VALIDATOR_KEYS = new Map<string, Signer>(
  VALIDATORS.map((id, index) => [id, index === 0 ? SIGNER : newKey()]),
);
export const VALIDATOR_MAP = new Map(
  [...VALIDATOR_KEYS].map(([id, { publicKey }]) => [id, publicKey]),
);

export const text = fc.oneof(
  anyText({ maxLength: 10 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 10 }),
  fc.constantFrom('', 'read', '\ue000', '\u{1f600}', '__proto__', '\u007f\u2028"\\'),
  // These are datetimes only in a datetime member; anywhere else, they are text.
  fc.constantFrom('2026-01-15T12:00:00+00:00', '2026-01-15 12:00:00.500Z'),
);
export const texts = fc.array(text, { maxLength: 4 });
export const count = fc.nat({ max: Number.MAX_SAFE_INTEGER - 1 });
const datetime = fc.oneof(
  fc
    .integer({ min: 1, max: 1_000_000_000_000 })
    .map((micros) => formatInstant(NOW + micros / 1000)),
  fc.constantFrom('2099-12-31T23:59:59+02:00', '2099-12-31T23:59:59.999999-11:30'),
);

const scalar: fc.Arbitrary<JsonValue> = fc.oneof(
  text,
  fc.boolean(),
  fc.constant(null),
  fc.integer(),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => new JsonFloat(value)),
);
export const { json } = fc.letrec<{ json: JsonValue }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(text, tie('json'), { maxKeys: 3 }),
  ),
}));
const freeForm: fc.Arbitrary<JsonObject> = fc.dictionary(text, json, { maxKeys: 3 });

/** Of records with one: a window ends after it begins, and nothing is issued after its end. */
const window = {
  issued_at: fc.constantFrom('2026-01-15T12:00:00Z', '2026-01-15T14:00:00.500000+02:00'),
  valid_from: fc.constantFrom('2026-01-15T12:00:00Z', '2030-01-01T00:00:00.000001-11:30'),
  expires_at: fc.constantFrom('2099-12-31T23:59:59+02:00', '2099-12-31T23:59:59.999999Z'),
};
export const attestationDraft = fc.record({
  attestation_id: text,
  issuer_sovereign_id: text,
  subject_id: text,
  subject_public_key: fc.option(text),
  roles: texts,
  status: fc.constantFrom('active', 'suspended'),
  ...window,
  issued_by: text,
  claims: freeForm,
});
export const treatyDraft = fc.record({
  treaty_id: text,
  issuer_sovereign_id: text,
  subject_sovereign_id: text,
  subject_public_keys: fc.array(text, { minLength: 1, maxLength: 3 }),
  scope: fc.record({
    allowed_roles: texts,
    accepted_statuses: fc.subarray(['active', 'suspended', 'revoked']),
    claims: freeForm,
  }),
  status: fc.constantFrom('active', 'suspended'),
  ...window,
  issued_by: text,
  metadata: freeForm,
});
export const feedDraft = fc.uniqueArray(text, { maxLength: 4 }).chain((ids) =>
  fc.record({
    feed_id: text,
    issuer_sovereign_id: text,
    sequence: fc.oneof(count, fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n })),
    issued_at: datetime,
    revoked_attestation_ids: fc.constant(ids.toSorted(compareCodePoints)),
    revocation_reasons: fc
      .tuple(fc.subarray(ids), text)
      .map(([reasoned, reason]) => Object.fromEntries(reasoned.map((id) => [id, reason]))),
    issued_by: text,
  }),
);
export const descriptorDraft = fc.record({
  agent_id: text,
  node_public_key: text,
  network_name: text,
  capabilities: texts,
  endpoint: fc.record({ host: text, port: fc.integer({ min: 1, max: 65_534 }), scheme: text }),
  registered_at: fc.constantFrom('2026-01-15T12:00:00Z', '2026-01-15T14:00:00.500000+02:00'),
  expires_at: window.expires_at,
  metadata: freeForm,
});
export const evidenceDraft = fc.record({
  evidence_id: text,
  issuer_sovereign_id: text,
  source_sovereign_id: text,
  target_sovereign_id: text,
  verdict: text,
  reason: text,
  requested_roles: texts,
  trusted: fc.boolean(),
  hop_count: count,
  signals: fc.array(fc.dictionary(text, text, { maxKeys: 3 }), { maxLength: 2 }),
  graph_digest: text,
  evaluated_at: text,
  issued_at: datetime,
  issued_by: text,
  metadata: freeForm,
});
const embeddedEvidence: fc.Arbitrary<JsonObject> = fc.oneof(
  evidenceDraft.map((draft) => signRecord(draft, soleSigner(SIGNER, 'key'))),
  freeForm.filter(({ verdict }) => verdict !== 'block'),
);
export const terms = fc.record({
  capabilities: texts,
  scope: freeForm,
  valid_from: datetime,
  valid_until: datetime,
  freshness_commitment: count,
});
export const offerDraft = fc.record({
  offer_id: text,
  offerer_sovereign_id: text,
  responder_sovereign_id: fc.constant('beta'),
  requested_terms: terms,
  graph_digest: text,
  offerer_evidence: embeddedEvidence,
  expires_at: datetime,
  created_at: datetime,
});
const agreedDraft = {
  offer_id: text,
  offerer_sovereign_id: text,
  responder_sovereign_id: text,
  agreed_terms: terms,
  offerer_evidence: embeddedEvidence,
  responder_evidence: embeddedEvidence,
  graph_digest: text,
};
export const counterDraft = fc.record({ ...agreedDraft, expires_at: datetime });
export const agreementDraft = fc.record({
  agreement_id: text,
  ...agreedDraft,
  established_at: datetime,
  expires_at: datetime,
});
export const signature = fc.option(fc.record({ key_id: text, sig: text }));
const freshnessProof = fc.record({
  proof_id: text,
  feed_sovereign_id: text,
  feed_sequence: count,
  feed_digest: text,
  attested_at: datetime,
  proof_valid_until: datetime,
  issuer_sovereign_id: text,
  signature,
});
export const decisionDraft = fc.record({
  decision_id: text,
  context_id: text,
  agreement_id: text,
  authorized: fc.constant(true),
  denial_reason: fc.option(text),
  gate_results: fc.array(fc.record({ gate_name: text, passed: fc.boolean(), detail: text }), {
    maxLength: 3,
  }),
  decision_made_at: datetime,
  decision_valid_until: datetime,
  operator_sovereign_id: text,
  freshness_proof: fc.option(freshnessProof),
});
const PROOF_ID = 'proof-1';
const DECISION_ID = 'decision-1';

export function voteDraft(validator: string) {
  return fc.record({
    vote_id: text,
    proof_id: fc.constant(PROOF_ID),
    decision_id: fc.constant(DECISION_ID),
    validator_sovereign_id: fc.constant(validator),
    vote: fc.constant(true),
    reason: fc.option(text),
    voted_at: datetime,
    // Distinct digests keep the score below the threshold, however close the votes are in time.
    context_digest: text.map((digest) => `${validator}:${digest}`),
  });
}

export function castBy(ballot: Omit<ValidatorVote, 'signature'>): ValidatorVote {
  const { validator_sovereign_id: validator } = ballot;
  return signSingly(ballot, soleSigner(VALIDATOR_KEYS.get(validator) ?? STRANGER, validator));
}

export const consensusDraft = fc.record({
  consensus_id: text,
  proof_id: fc.constant(PROOF_ID),
  decision_id: fc.constant(DECISION_ID),
  required_threshold: fc.integer({ min: 1, max: 2 }),
  validator_sovereign_ids: texts.map((others) => [...VALIDATORS, ...others]),
  votes: fc.tuple(...(['val-1', 'val-2', 'val-3'] as const).map((id) => voteDraft(id).map(castBy))),
  reached_at: datetime,
  expires_at: datetime,
  cascade_assessment_digest: fc.option(text),
});
export const COMMITTED = ['read', 'write', 'audit'];
export const commitmentDraft = fc.record({
  commitment_id: fc.constant('commitment-1'),
  merkle_root: fc.constant(merkleRoot(COMMITTED, SHA256)),
  capability_count: fc.constant(COMMITTED.length),
  agreement_id: text,
  committed_at: datetime,
  issuer_sovereign_id: text,
});
export const MEMBER = proofOf(COMMITTED, 'write');
export const nullifierDraft = fc.record({
  nullifier_id: text,
  proof_id: text,
  nonce: text,
  issued_at: datetime,
  expires_at: datetime,
  prover_sovereign_id: text,
});
export const policyDraft = fc.record({
  policy_id: text,
  licensor_sovereign_id: text,
  licensee_sovereign_id: text,
  allowed_source_ids: texts,
  allowed_access_types: texts,
  max_volume_bytes_per_session: fc.option(count),
  prohibited_classification_tags: texts,
  valid_from: datetime,
  valid_until: datetime,
});
export const source = fc.record({
  source_id: text,
  source_type: text,
  owner_sovereign_id: text,
  classification_tags: texts,
});
export const intentDraft = fc.record({
  intent_id: text,
  agent_sovereign_id: text,
  decision_id: text,
  declared_sources: fc.array(source, { maxLength: 3 }),
  declared_access_types: texts,
  estimated_volume_bytes: fc.option(count),
  declared_at: datetime,
  expires_at: datetime,
});

export function proofOf(
  capabilities: readonly string[],
  capability: string,
): CapabilityMembershipProof {
  const disclosure = { commitmentId: 'commitment-1', capability, capabilities, prover: 'beta' };
  const proof = proveMembership(disclosure, 'membership-1', NOW, SHA256);
  assert.ok(proof !== null, `${capability} is not among the capabilities`);
  return proof;
}

export function consensusOf(votes: readonly ValidatorVote[], threshold = 1): ConsensusProof {
  const proof = {
    consensus_id: 'consensus-1',
    proof_id: PROOF_ID,
    decision_id: DECISION_ID,
    required_threshold: threshold,
    validator_sovereign_ids: [...VALIDATORS],
    votes: [...votes],
    reached_at: formatInstant(NOW),
    expires_at: FAR[0],
    cascade_assessment_digest: null,
  };
  return signSingly(proof, soleSigner(SIGNER, 'key'));
}

export const justificationDraft = fc.record({
  proof_id: text,
  decision_id: text,
  trace: fc.record({
    trace_id: text,
    decision_id: text,
    agreement_id: text,
    operator_sovereign_id: text,
    traced_at: datetime,
    entries: fc.array(
      fc.record({
        gate_name: text,
        gate_type: text,
        evaluated_at: datetime,
        inputs: freeForm,
        result: fc.boolean(),
        reason: text,
        metadata: freeForm,
      }),
      { maxLength: 2 },
    ),
    short_circuited_at: fc.option(text),
    final_authorized: fc.boolean(),
  }),
  proof_issued_at: datetime,
  issuer_sovereign_id: text,
  signature,
});
export const membershipDraft = fc.record({
  proof_id: text,
  commitment_id: text,
  revealed_capability: text,
  leaf_hash: text,
  merkle_path: fc.array(fc.record({ sibling_hash: text, is_left: fc.boolean() }), { maxLength: 4 }),
  prover_sovereign_id: text,
  proved_at: datetime,
});
export const trustDecisionDraft = fc.record({
  source_sovereign_id: text,
  target_sovereign_id: text,
  verdict: fc.constantFrom('allow', 'warn', 'block', 'escalate'),
  reason: text,
  requested_roles: texts,
  trusted: fc.boolean(),
  hop_count: count,
  signals: fc.array(fc.record({ code: text, severity: text, detail: text }), { maxLength: 2 }),
  evaluated_at: text,
});

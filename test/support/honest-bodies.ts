/**
 * One honest body for each public route with a body, and the places where a stranger can grow it.
 * Signatures are left open, so that a body can be grown first and signed afterwards.
 */
import { SHA256 } from '../../src/base/crypto/digest.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { agreementText, readAgreementRecord } from '../../src/protocol/records/agreement.ts';
import { readBoundaryDecision } from '../../src/protocol/records/boundary-decision.ts';
import { readCapabilityCommitment } from '../../src/protocol/records/capability-disclosure.ts';
import { merklePath, merkleRoot } from '../../src/protocol/records/capability-tree.ts';
import { readConsensusProof } from '../../src/protocol/records/consensus-proof.ts';
import { readDataAccessIntent } from '../../src/protocol/records/data-usage.ts';
import { readMembershipAttestation } from '../../src/protocol/records/membership-attestation.ts';
import { readRecognitionTreaty } from '../../src/protocol/records/recognition-treaty.ts';
import { signedText, singlySignedText } from '../../src/protocol/records/signed-record.ts';
import { readTrustEvidence } from '../../src/protocol/records/trust-evidence.ts';
import { readValidatorVote } from '../../src/protocol/records/validator-vote.ts';
import { HOUR } from './clock.ts';
import { type HonestBody, listed, single } from './honest-body.ts';
import { newKey } from './requests.ts';
import { sovereign } from './trust.ts';
import { agreementBetween, decisionBy, evidence } from './trust-protocol.ts';

const [ALPHA, BETA] = [sovereign('alpha'), sovereign('beta')];
const VALIDATORS = Array.from({ length: 256 }, (_, index) => sovereign(`validator-${index}`));
const BY_NAME = new Map(VALIDATORS.map(({ name, key }) => [name, key]));
const CAPABILITIES = ['audit', 'read', 'write'];

export function honestBodies(now: number): HonestBody[] {
  const at = formatInstant(now);
  const until = formatInstant(now + HOUR);
  const attestation = BETA.attestation(now);
  const treaty = ALPHA.treaty(now, BETA);
  const attestationPlace = listed('attestation', BETA.key, (record) => {
    const read = readMembershipAttestation(record);
    return read && signedText(read);
  });
  const treatyPlace = listed('treaty', ALPHA.key, (record) => {
    const read = readRecognitionTreaty(record);
    return read && signedText(read);
  });
  const commitment = {
    commitment_id: 'commitment',
    merkle_root: merkleRoot(CAPABILITIES, SHA256),
    capability_count: CAPABILITIES.length,
    agreement_id: 'agreement',
    committed_at: at,
    issuer_sovereign_id: 'alpha',
    signature: null,
  };
  return [
    {
      path: '/attestations/verify',
      body: { attestation, recognition_policy: policyFor(BETA.name, BETA.key) },
      keyLists: ['recognition_policy.recognized_issuers.0.public_keys'],
      signed: [attestationPlace],
      slots: [
        ['attestation.claims', 'free'],
        ['attestation.roles', 'texts'],
        ['attestation.attestation_id', 'text'],
        ['recognition_policy.recognized_issuers.0.allowed_roles', 'texts'],
        ['recognition_policy.revoked_attestation_ids', 'texts'],
        ['recognition_policy.recognized_issuers', 'items'],
        ['unknown', 'free'],
      ],
    },
    {
      path: '/attestations/verify-with-treaty',
      body: { attestation, treaty, treaty_issuer_public_keys: [ALPHA.key.publicKey] },
      keyLists: ['treaty_issuer_public_keys', 'treaty.subject_public_keys'],
      signed: [attestationPlace, treatyPlace],
      slots: [
        ['attestation.claims', 'free'],
        ['attestation.roles', 'texts'],
        ['treaty.scope.allowed_roles', 'texts'],
        ['treaty.scope.claims', 'free'],
        ['treaty.metadata', 'free'],
      ],
    },
    {
      path: '/recognition-treaties/verify',
      body: { treaty, issuer_public_keys: [ALPHA.key.publicKey] },
      keyLists: ['issuer_public_keys'],
      signed: [treatyPlace],
      slots: [
        ['treaty.metadata', 'free'],
        ['treaty.subject_public_keys', 'texts'],
        ['treaty.treaty_id', 'text'],
        ['treaty.scope.allowed_roles', 'texts'],
      ],
    },
    {
      path: '/agreements/verify',
      body: {
        agreement: agreementBetween(ALPHA, BETA, now),
        offerer_public_keys: [ALPHA.key.publicKey],
        responder_public_keys: [ALPHA.key.publicKey],
      },
      keyLists: ['offerer_public_keys', 'responder_public_keys'],
      signed: [
        listed('agreement', ALPHA.key, (record) => {
          const read = readAgreementRecord(record);
          return read && agreementText(read);
        }),
      ],
      slots: [
        ['agreement.agreed_terms.scope', 'free'],
        ['agreement.offerer_evidence', 'free'],
        ['agreement.responder_evidence', 'free'],
        ['agreement.graph_digest', 'text'],
      ],
    },
    {
      path: '/boundary/verify',
      body: {
        decision: decisionBy(ALPHA, now),
        operator_public_keys: [ALPHA.key.publicKey],
      },
      keyLists: ['operator_public_keys'],
      signed: [
        single(['decision'], ALPHA.key, (record) => {
          const read = readBoundaryDecision(record);
          return read && singlySignedText(read);
        }),
      ],
      slots: [
        ['decision.gate_results', 'items'],
        ['decision.denial_reason', 'text'],
        ['decision.unknown', 'free'],
      ],
    },
    {
      path: '/trust-evidence/verify',
      body: { evidence: evidence(ALPHA, BETA, now), issuer_public_keys: [ALPHA.key.publicKey] },
      keyLists: ['issuer_public_keys'],
      signed: [
        listed('evidence', ALPHA.key, (record) => {
          const read = readTrustEvidence(record);
          return read && signedText(read);
        }),
      ],
      slots: [
        ['evidence.metadata', 'free'],
        ['evidence.signals', 'items'],
        ['evidence.requested_roles', 'texts'],
        ['evidence.reason', 'text'],
      ],
    },
    {
      path: '/disclosure/prove',
      body: {
        capability: 'read',
        capabilities: CAPABILITIES,
        commitment,
        prover_sovereign_id: 'alpha',
      },
      keyLists: [],
      signed: [],
      slots: [
        ['capabilities', 'texts'],
        ['prover_sovereign_id', 'text'],
        ['commitment.unknown', 'free'],
      ],
    },
    {
      path: '/disclosure/verify',
      body: {
        proof: {
          proof_id: 'proof',
          commitment_id: 'commitment',
          revealed_capability: 'read',
          leaf_hash: 'ab'.repeat(32),
          merkle_path: (merklePath(CAPABILITIES, 'read', SHA256) ?? []) as unknown as JsonValue,
          prover_sovereign_id: 'alpha',
          proved_at: at,
        },
        commitment,
        issuer_public_keys: [ALPHA.key.publicKey],
      },
      keyLists: ['issuer_public_keys'],
      signed: [
        single(['commitment'], ALPHA.key, (record) => {
          const read = readCapabilityCommitment(record);
          return read && singlySignedText(read);
        }),
      ],
      slots: [
        ['commitment.agreement_id', 'text'],
        ['proof.revealed_capability', 'text'],
        ['proof.merkle_path', 'items'],
        ['unknown', 'free'],
      ],
    },
    consensusBody(now),
    {
      path: '/data-usage/verify',
      body: {
        intent: {
          intent_id: 'i',
          agent_sovereign_id: 'b',
          decision_id: 'decision',
          declared_sources: [
            {
              source_id: 'source',
              source_type: 'public',
              owner_sovereign_id: 'beta',
              classification_tags: ['secret'],
            },
          ],
          declared_access_types: ['read'],
          estimated_volume_bytes: 5,
          declared_at: at,
          expires_at: until,
          signature: null,
        },
        policy: {
          policy_id: 'policy',
          licensor_sovereign_id: 'alpha',
          licensee_sovereign_id: 'beta',
          allowed_source_ids: [],
          allowed_access_types: [],
          max_volume_bytes_per_session: 1,
          prohibited_classification_tags: ['secret'],
          valid_from: at,
          valid_until: until,
          signature: null,
        },
        agent_public_keys: [BETA.key.publicKey],
      },
      keyLists: ['agent_public_keys'],
      signed: [
        single(['intent'], BETA.key, (record) => {
          const read = readDataAccessIntent(record);
          return read && singlySignedText(read);
        }),
      ],
      slots: [
        ['intent.declared_sources', 'items'],
        ['intent.declared_sources.0.classification_tags', 'texts'],
        ['intent.declared_access_types', 'texts'],
        ['policy.allowed_source_ids', 'texts'],
        ['policy.prohibited_classification_tags', 'texts'],
        ['intent.decision_id', 'text'],
      ],
    },
  ];
}

function consensusBody(now: number): HonestBody {
  const votes = VALIDATORS.map(({ name }, index) => ({
    vote_id: `vote-${index}`,
    proof_id: 'proof',
    decision_id: 'decision',
    validator_sovereign_id: name,
    vote: true,
    reason: 'agreed',
    voted_at: formatInstant(now + index * 60_000),
    context_digest: String(index).padStart(64, '0'),
    signature: null,
  }));
  const proof = {
    consensus_id: 'consensus',
    proof_id: 'proof',
    decision_id: 'decision',
    required_threshold: 256,
    validator_sovereign_ids: VALIDATORS.map(({ name }) => name),
    votes,
    reached_at: formatInstant(now),
    expires_at: formatInstant(now + HOUR),
    cascade_assessment_digest: null,
    signature: null,
  };
  const keys = VALIDATORS.map(({ name, key }) => [name, key.publicKey] as const);
  return {
    path: '/consensus/verify',
    body: {
      proof,
      validator_public_keys: Object.fromEntries(keys),
      assembler_public_keys: [ALPHA.key.publicKey],
    },
    keyLists: ['assembler_public_keys'],
    signed: [
      {
        at: ['proof', 'votes', '*'],
        form: 'single',
        signer: (vote) => BY_NAME.get(String(vote.validator_sovereign_id)) ?? newKey(),
        text(record) {
          const read = readValidatorVote(record);
          return read && singlySignedText(read);
        },
      },
      single(['proof'], ALPHA.key, (record) => {
        const read = readConsensusProof(record);
        return read && singlySignedText(read);
      }),
    ],
    slots: [
      ['proof.votes.*.reason', 'text'],
      ['proof.votes.0.reason', 'text'],
      ['proof.votes.0.unknown', 'free'],
      ['proof.validator_sovereign_ids', 'texts'],
      ['validator_public_keys', 'free'],
    ],
  };
}

function policyFor(issuer: string, key: Signer): JsonObject {
  const issuers = [
    {
      sovereign_id: issuer,
      public_keys: [key.publicKey],
      allowed_roles: [],
      accepted_statuses: ['active'],
    },
  ];
  return {
    local_sovereign_id: 'alpha',
    recognized_issuers: issuers,
    revoked_attestation_ids: [],
  };
}

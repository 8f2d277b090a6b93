import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { agreementText, readAgreementRecord } from '../../src/protocol/records/agreement.ts';
import { readBoundaryDecision } from '../../src/protocol/records/boundary-decision.ts';
import { readCapabilityCommitment } from '../../src/protocol/records/capability-disclosure.ts';
import { readConsensusProof } from '../../src/protocol/records/consensus-proof.ts';
import { readDataAccessIntent } from '../../src/protocol/records/data-usage.ts';
import {
  readMembershipAttestation,
  readRecognitionTreaty,
} from '../../src/protocol/records/recognition.ts';
import { signedText, singlySignedText } from '../../src/protocol/records/signed-record.ts';
import { readTrustEvidence } from '../../src/protocol/records/trust-evidence.ts';
import { readValidatorVote } from '../../src/protocol/records/validator-vote.ts';
import { HOUR } from './clock.ts';
import { keysOf, namesOf, proofBy, voteOf } from './consensus.ts';
import { intentBy, policyBy, SOURCE } from './data-usage.ts';
import { verification as disclosureOf, SET } from './disclosure.ts';
import { newKey } from './requests.ts';
import { sovereign } from './trust.ts';
import { agreementBetween, decisionBy, evidence } from './trust-protocol.ts';
import { entryOf, policyOf } from './verifications.ts';

/** What a place allows: any JSON, a list of texts, a list of more items like the first, or a text. */
export type SlotKind = 'free' | 'texts' | 'items' | 'text';

export interface SignedPlace {
  /** The path of members to the record; `*` means each item of a list. */
  readonly at: readonly string[];
  /** The text that its signatures cover; null if it is no longer a valid record. */
  text(record: JsonObject): string | null;
  readonly form: 'list' | 'single';
  readonly signer: (record: JsonObject) => Signer;
}

export interface HonestBody {
  readonly path: string;
  readonly body: JsonObject;
  /** Names of the members that are lists of keys. */
  readonly keyLists: readonly string[];
  /** Inner records first, because outer signatures cover them. */
  readonly signed: readonly SignedPlace[];
  readonly slots: readonly (readonly [path: string, kind: SlotKind])[];
}

type TextOf = SignedPlace['text'];

function listed(at: string, key: Signer, text: TextOf): SignedPlace {
  return { at: [at], form: 'list', signer: () => key, text };
}

function single(at: readonly string[], key: Signer, text: TextOf): SignedPlace {
  return { at, form: 'single', signer: () => key, text };
}

const [ALPHA, BETA] = [sovereign('alpha'), sovereign('beta')];
const VALIDATORS = Array.from({ length: 256 }, (_, index) => sovereign(`validator-${index}`));
const BY_NAME = new Map(VALIDATORS.map(({ name, key }) => [name, key]));

export function honestBodies(now: number): HonestBody[] {
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
  const { commitment, proof } = disclosureOf(ALPHA, now);
  return [
    {
      path: '/attestations/verify',
      body: { attestation, recognition_policy: policyOf({ ...entryOf(BETA), allowed_roles: [] }) },
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
        capabilities: SET,
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
        proof,
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
        // It exceeds the policy in every way.
        intent: intentBy(BETA, now, {
          intent_id: 'i',
          declared_sources: [{ ...SOURCE, classification_tags: ['secret'] }],
        }),
        policy: policyBy(ALPHA, now, {
          allowed_source_ids: [],
          allowed_access_types: [],
          max_volume_bytes_per_session: 1,
        }),
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
  const votes = VALIDATORS.map((voter, index) => voteOf(voter, now, { after: 60 * index }));
  const proof = proofBy(ALPHA, now, {
    required_threshold: VALIDATORS.length,
    validator_sovereign_ids: namesOf(VALIDATORS),
    votes,
    expires_at: formatInstant(now + HOUR),
  });
  return {
    path: '/consensus/verify',
    body: {
      proof,
      validator_public_keys: keysOf(VALIDATORS),
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

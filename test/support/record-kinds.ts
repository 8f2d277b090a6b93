/** Every kind of record that is received: its reader, and what the signatures on it cover. */
import assert from 'node:assert/strict';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import { readAgentDescriptor } from '../../src/protocol/records/agent-descriptor.ts';
import {
  type AgreedMembers,
  agreementText,
  isAgreedByAny,
  readAgreementRecord,
  readCapabilityCounter,
  readCapabilityOffer,
} from '../../src/protocol/records/agreement.ts';
import {
  FreshnessProof,
  readBoundaryDecision,
} from '../../src/protocol/records/boundary-decision.ts';
import {
  CapabilityNullifier,
  readCapabilityCommitment,
  readCapabilityMembershipProof,
} from '../../src/protocol/records/capability-disclosure.ts';
import { readConsensusProof } from '../../src/protocol/records/consensus-proof.ts';
import {
  readDataAccessIntent,
  readDataLicensePolicy,
  readDataSourceDescriptor,
} from '../../src/protocol/records/data-usage.ts';
import {
  readMembershipAttestation,
  readRecognitionTreaty,
} from '../../src/protocol/records/recognition.ts';
import { type Fresh, recordReader, type SignatureItem } from '../../src/protocol/records/record.ts';
import { readRevocationFeed } from '../../src/protocol/records/revocation-feed.ts';
import {
  isSignedByAny,
  isSinglySignedByAny,
  type SignedRecord,
  type SinglySignedRecord,
  signedText,
  singlySignedText,
} from '../../src/protocol/records/signed-record.ts';
import { readTrustDecision, readTrustEvidence } from '../../src/protocol/records/trust-evidence.ts';
import {
  readJustificationProof,
  readValidatorVote,
} from '../../src/protocol/records/validator-vote.ts';

type Reader = (received: unknown, fresh?: Fresh) => JsonObject | null;

/** The reader of each record type; null for types that are never received. */
export const READERS: { readonly [type: string]: Reader | null } = {
  TrustEvidence: readTrustEvidence,
  TrustDecision: readTrustDecision,
  RecognitionGraph: null,
  CapabilityOffer: readCapabilityOffer,
  CapabilityCounter: readCapabilityCounter,
  AgreementRecord: readAgreementRecord,
  BoundaryDecision: readBoundaryDecision,
  FreshnessProof: recordReader(FreshnessProof),
  ContextRecord: null,
  JustificationProof: readJustificationProof,
  ValidatorVote: readValidatorVote,
  ConsensusProof: readConsensusProof,
  CapabilityCommitment: readCapabilityCommitment,
  CapabilityMembershipProof: readCapabilityMembershipProof,
  CapabilityNullifier: recordReader(CapabilityNullifier),
  DataLicensePolicy: readDataLicensePolicy,
  DataAccessIntent: readDataAccessIntent,
  DataSourceDescriptor: readDataSourceDescriptor,
  DataUsageViolation: null,
  RecognitionTreaty: readRecognitionTreaty,
  MembershipAttestation: readMembershipAttestation,
  SovereignRevocationFeed: readRevocationFeed,
  AgentDescriptor: readAgentDescriptor,
};

export function read(type: string, received: JsonValue, fresh?: Fresh): JsonObject | null {
  const reader = READERS[type];
  assert.ok(reader !== undefined && reader !== null, type);
  return reader(received, fresh);
}

export function mustRead(type: string, received: JsonValue): JsonObject {
  const record = read(type, received);
  assert.ok(record !== null, `${type} is read`);
  return record;
}

interface SignedForm {
  readonly text: string;
  readonly signatures: readonly SignatureItem[];
  isSignedBy(publicKeys: readonly string[]): boolean;
}

/** What the signatures on a received record cover, and how they are verified. */
export function formOf(type: string, received: JsonObject): SignedForm {
  const record = mustRead(type, received);
  if (type === 'CapabilityCounter' || type === 'AgreementRecord') {
    const agreed = record as SignedRecord & AgreedMembers;
    const isSignedBy = (keys: readonly string[]) => isAgreedByAny(agreed, keys, verifySignature);
    return { text: agreementText(agreed), signatures: agreed.signatures, isSignedBy };
  }
  if ('signatures' in record) {
    const listed = record as SignedRecord;
    const isSignedBy = (keys: readonly string[]) => isSignedByAny(listed, keys, verifySignature);
    return { text: signedText(listed), signatures: listed.signatures, isSignedBy };
  }
  const single = record as SinglySignedRecord;
  const isSignedBy = (keys: readonly string[]) =>
    isSinglySignedByAny(single, keys, verifySignature);
  const signatures = single.signature === null ? [] : [single.signature];
  return { text: singlySignedText(single), signatures, isSignedBy };
}

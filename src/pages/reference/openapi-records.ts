/** Names of the records, rows and answers that are components of the OpenAPI document. */
import type { TObject } from 'typebox';
import * as documents from '../../protocol/answers/documents.ts';
import * as enrollment from '../../protocol/answers/enrollment.ts';
import * as operators from '../../protocol/answers/operators.ts';
import * as recognition from '../../protocol/answers/recognition.ts';
import * as verdicts from '../../protocol/answers/verdicts.ts';
import { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import {
  AgreementRecord,
  AgreementTerms,
  CapabilityCounter,
  CapabilityOffer,
} from '../../protocol/records/agreement.ts';
import { BoundaryDecision } from '../../protocol/records/boundary-decision.ts';
import { Bulletin } from '../../protocol/records/bulletin.ts';
import {
  CapabilityCommitment,
  CapabilityMembershipProof,
  CapabilityNullifier,
} from '../../protocol/records/capability-disclosure.ts';
import { ConsensusProof } from '../../protocol/records/consensus-proof.ts';
import {
  DataAccessIntent,
  DataLicensePolicy,
  DataSourceDescriptor,
} from '../../protocol/records/data-usage.ts';
import { GenesisBlock } from '../../protocol/records/genesis.ts';
import { JoinCertificate } from '../../protocol/records/join-certificate.ts';
import { JustificationProof } from '../../protocol/records/justification-proof.ts';
import { MembershipAttestation } from '../../protocol/records/membership-attestation.ts';
import { PolicyManifest } from '../../protocol/records/policy-manifest.ts';
import { RecognitionPolicy, RecognizedIssuer } from '../../protocol/records/recognition-policy.ts';
import { RecognitionTreaty, TreatyScope } from '../../protocol/records/recognition-treaty.ts';
import { SignatureItem } from '../../protocol/records/record.ts';
import { SovereignRevocationFeed } from '../../protocol/records/revocation-feed.ts';
import {
  CertificateRevocationList,
  RevokedCertificate,
} from '../../protocol/records/revocation-list.ts';
import { RevocationListDelta } from '../../protocol/records/revocation-list-delta.ts';
import { TrustDecision, TrustEvidence } from '../../protocol/records/trust-evidence.ts';
import { ValidatorVote } from '../../protocol/records/validator-vote.ts';
import { AttestationRow } from '../../protocol/rows/attestation.ts';
import { Dashboard } from '../../protocol/rows/dashboard.ts';
import {
  Atlas,
  BlastRadiusRow,
  Connectome,
  EdgeRow,
  RecognitionGraph,
  SovereignRow,
  TrustAnswer,
  TrustExplanation,
} from '../../protocol/rows/graph.ts';
import { Lifecycle, TreatyRow } from '../../protocol/rows/treaty.ts';

const RECORDS: { readonly [name: string]: TObject } = {
  AgentDescriptor,
  AgreementRecord,
  AgreementTerms,
  Atlas,
  AttestationRow,
  BlastRadiusRow,
  BoundaryDecision,
  Bulletin,
  CapabilityCommitment,
  CapabilityCounter,
  CapabilityMembershipProof,
  CapabilityNullifier,
  CapabilityOffer,
  CertificateRevocationList,
  Connectome,
  ConsensusProof,
  Dashboard,
  DataAccessIntent,
  DataLicensePolicy,
  DataSourceDescriptor,
  EdgeRow,
  GenesisBlock,
  JoinCertificate,
  JustificationProof,
  Lifecycle,
  MembershipAttestation,
  PolicyManifest,
  RecognitionGraph,
  RecognitionPolicy,
  RecognitionTreaty,
  RecognizedIssuer,
  RevocationListDelta,
  RevokedCertificate,
  Signature: SignatureItem,
  SovereignRevocationFeed,
  SovereignRow,
  TreatyRow,
  TreatyScope,
  TrustDecision,
  TrustEvidence,
  TrustExplanation,
  TrustPath: TrustAnswer,
  ValidatorVote,
};

const ANSWERS: { readonly [name: string]: unknown } = {
  ...documents,
  ...enrollment,
  ...operators,
  ...recognition,
  ...verdicts,
};

function isObjectSchema(exported: unknown): exported is TObject {
  return typeof exported === 'object' && exported !== null && 'properties' in exported;
}

/** Keyed by the properties object of a schema, which does not change when the schema becomes optional. */
export const RECORD_NAMES: ReadonlyMap<unknown, string> = new Map(
  Object.entries({ ...ANSWERS, ...RECORDS }).flatMap(([name, schema]) =>
    isObjectSchema(schema) ? [[schema.properties, name] as const] : [],
  ),
);

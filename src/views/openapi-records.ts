/** Names of the records, rows and answers that the published description has as components. */
import type { TObject } from 'typebox';
import * as documents from '../answers/documents.ts';
import * as enrollment from '../answers/enrollment.ts';
import * as operators from '../answers/operators.ts';
import * as recognition from '../answers/recognition.ts';
import * as verdicts from '../answers/verdicts.ts';
import { AgentDescriptor } from '../records/agent-descriptor.ts';
import {
  AgreementRecord,
  AgreementTerms,
  CapabilityCounter,
  CapabilityOffer,
} from '../records/agreement.ts';
import { BoundaryDecision } from '../records/boundary-decision.ts';
import { Bulletin } from '../records/bulletin.ts';
import {
  CapabilityCommitment,
  CapabilityMembershipProof,
  CapabilityNullifier,
} from '../records/capability-disclosure.ts';
import { ConsensusProof } from '../records/consensus-proof.ts';
import {
  DataAccessIntent,
  DataLicensePolicy,
  DataSourceDescriptor,
} from '../records/data-usage.ts';
import { GenesisBlock } from '../records/genesis.ts';
import { JoinCertificate } from '../records/join-certificate.ts';
import { JustificationProof } from '../records/justification-proof.ts';
import { MembershipAttestation } from '../records/membership-attestation.ts';
import { PolicyManifest } from '../records/policy-manifest.ts';
import { RecognitionPolicy, RecognizedIssuer } from '../records/recognition-policy.ts';
import { RecognitionTreaty, TreatyScope } from '../records/recognition-treaty.ts';
import { SignatureItem } from '../records/record.ts';
import { SovereignRevocationFeed } from '../records/revocation-feed.ts';
import { CertificateRevocationList, RevokedCertificate } from '../records/revocation-list.ts';
import { RevocationListDelta } from '../records/revocation-list-delta.ts';
import { TrustDecision, TrustEvidence } from '../records/trust-evidence.ts';
import { ValidatorVote } from '../records/validator-vote.ts';
import { AttestationRow } from './rows/attestation.ts';
import { Dashboard } from './rows/dashboard.ts';
import {
  Atlas,
  BlastRadiusRow,
  Connectome,
  EdgeRow,
  RecognitionGraph,
  SovereignRow,
  TrustAnswer,
  TrustExplanation,
} from './rows/graph.ts';
import { Lifecycle, TreatyRow } from './rows/treaty.ts';

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

/** By the members of a schema, which stay the same object when the schema becomes optional. */
export const RECORD_NAMES: ReadonlyMap<unknown, string> = new Map(
  Object.entries({ ...ANSWERS, ...RECORDS }).flatMap(([name, schema]) =>
    isObjectSchema(schema) ? [[schema.properties, name] as const] : [],
  ),
);

/** Names of the records, rows and answers that are components of the OpenAPI document: those of their exports. */
import type { TObject } from 'typebox';
import * as documents from '../../protocol/answers/documents.ts';
import * as enrollment from '../../protocol/answers/enrollment.ts';
import * as operators from '../../protocol/answers/operators.ts';
import * as recognition from '../../protocol/answers/recognition.ts';
import * as verdicts from '../../protocol/answers/verdicts.ts';
import * as agentDescriptor from '../../protocol/records/agent-descriptor.ts';
import * as agreement from '../../protocol/records/agreement.ts';
import { BoundaryDecision } from '../../protocol/records/boundary-decision.ts';
import * as bulletin from '../../protocol/records/bulletin.ts';
import * as disclosure from '../../protocol/records/capability-disclosure.ts';
import * as consensus from '../../protocol/records/consensus-proof.ts';
import * as dataUsage from '../../protocol/records/data-usage.ts';
import * as genesis from '../../protocol/records/genesis.ts';
import * as joinCertificate from '../../protocol/records/join-certificate.ts';
import * as policyManifest from '../../protocol/records/policy-manifest.ts';
import * as recognitionRecords from '../../protocol/records/recognition.ts';
import { SignatureItem } from '../../protocol/records/record.ts';
import * as revocationFeed from '../../protocol/records/revocation-feed.ts';
import * as revocationList from '../../protocol/records/revocation-list.ts';
import * as revocationListDelta from '../../protocol/records/revocation-list-delta.ts';
import * as trustEvidence from '../../protocol/records/trust-evidence.ts';
import * as validatorVote from '../../protocol/records/validator-vote.ts';
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
import * as recognitionRows from '../../protocol/rows/recognition.ts';

/** Modules whose schemas are all components. */
const MODULES: readonly object[] = [
  documents,
  enrollment,
  operators,
  recognition,
  verdicts,
  agentDescriptor,
  agreement,
  bulletin,
  disclosure,
  consensus,
  dataUsage,
  genesis,
  joinCertificate,
  policyManifest,
  recognitionRecords,
  revocationFeed,
  revocationList,
  revocationListDelta,
  trustEvidence,
  validatorVote,
  recognitionRows,
];

/** The others, among schemas that are written out where they occur. */
const FURTHER = {
  Atlas,
  BlastRadiusRow,
  BoundaryDecision,
  Connectome,
  Dashboard,
  EdgeRow,
  RecognitionGraph,
  Signature: SignatureItem,
  SovereignRow,
  TrustExplanation,
  TrustPath: TrustAnswer,
};

function isObjectSchema(exported: unknown): exported is TObject {
  return typeof exported === 'object' && exported !== null && 'properties' in exported;
}

/** Keyed by the properties object of a schema, which does not change when the schema becomes optional. */
export const RECORD_NAMES: ReadonlyMap<unknown, string> = new Map(
  [...MODULES, FURTHER]
    .flatMap((schemas) => Object.entries(schemas))
    .flatMap(([name, schema]) =>
      isObjectSchema(schema) ? [[schema.properties, name] as const] : [],
    ),
);

/** Trust evidence: build, verify [trust-5-5], [trust-6-3]. */
import Type from 'typebox';
import { isJsonObject, isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { demand, refuse } from '../../base/refusal.ts';
import { EvidenceVerdict } from '../../protocol/answers/verdicts.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import {
  readTrustDecision,
  TrustDecision,
  TrustEvidence,
  VERDICTS,
} from '../../protocol/records/trust-evidence.ts';
import { judgeEvidence } from '../../protocol/verification.ts';
import type { RouteEntry } from '../route.ts';
import {
  demandPresent,
  integerOf,
  isMissing,
  Keys,
  optional,
  recordRoute,
} from './trust-requests.ts';
import { logging, verificationRoute } from './verification-route.ts';

export const evidenceRoutes: readonly RouteEntry[] = [
  recordRoute({
    path: '/admin/trust-evidence',
    summary: 'Sign a trust decision as evidence',
    description: 'The decision is signed as stated; it is not compared with the graph.',
    body: Type.Object({
      decision: TrustDecision,
      graph_digest: optional(Type.String({ description: 'else that of our graph' })),
    }),
    answer: TrustEvidence,
    refusals: ['missing_decision', 'invalid_decision', 'evidence_build_failed'],
    command: 'buildEvidence',
    read: buildInput,
  }),
  verificationRoute({
    path: '/trust-evidence/verify',
    summary: 'Verify trust evidence',
    description: 'Evidence of a block is accepted as evidence; it does not expire.',
    body: Type.Object({
      evidence: TrustEvidence,
      issuer_public_keys: Keys,
      expected_graph_digest: optional(Type.String()),
    }),
    answer: EvidenceVerdict,
    refusals: ['missing_evidence', 'invalid_evidence'],
    event: 'trust_evidence_verified',
    judge(body, by) {
      demandPresent(body, ['evidence'], 'missing_evidence');
      return logging(judgeEvidence(body, by), 'evidence_id', 'accepted');
    },
  }),
];

function buildInput(body: JsonObject): CallInput<'buildEvidence'> {
  const { decision, graph_digest: digest } = body;
  const isThere = isJsonObject(decision) && !isMissing(decision);
  demand(isThere, 'missing_decision', 'missing_decision');
  demandForm(decision);
  const read = readTrustDecision(decision);
  const record = read ?? refuse('evidence_build_failed', 'invalid_decision');
  if (isMissing(digest)) return { decision: record, graphDigest: null };
  demand(typeof digest === 'string', 'evidence_build_failed', 'invalid_graph_digest');
  return { decision: record, graphDigest: digest };
}

/** The members that a decision must have; the types of the others are checked when the evidence is built. */
function demandForm(decision: JsonObject): void {
  const { verdict, hop_count: hops, trusted } = decision;
  demand(
    VERDICTS.some((known) => known === verdict),
    'invalid_decision',
    'invalid_verdict',
  );
  for (const name of ['source_sovereign_id', 'target_sovereign_id']) {
    demand((decision[name] ?? null) !== null, 'invalid_decision', `missing_${name}`);
  }
  for (const name of ['signals', 'requested_roles']) {
    const list = decision[name];
    demand(list === undefined || isList(list), 'invalid_decision', `invalid_${name}`);
  }
  demand(listOf(decision.signals).every(isSignal), 'invalid_decision', 'invalid_signals');
  const isCount = hops === undefined || integerOf(hops) !== null;
  demand(isCount, 'invalid_decision', 'invalid_hop_count');
  const isFlag = trusted === undefined || typeof trusted === 'boolean';
  demand(isFlag, 'invalid_decision', 'invalid_trusted');
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return isList(value) ? value : [];
}

function isSignal(value: JsonValue): boolean {
  if (!isJsonObject(value)) return false;
  return (value.code ?? null) !== null && (value.severity ?? null) !== null;
}

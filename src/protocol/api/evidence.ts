/** Trust evidence [trust-5-5]. */
import Type from 'typebox';
import { isJsonObject, isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import {
  readTrustDecision,
  TrustDecision,
  TrustEvidence,
  VERDICTS,
} from '../records/trust-evidence.ts';
import { demand, refuse } from '../refusals.ts';
import { operatorCommand } from './define.ts';
import { readBy } from './members.ts';
import { integerOf, isMissing, omittable } from './trust-members.ts';

export const buildEvidence = operatorCommand('POST /admin/trust-evidence', {
  created: 'always',
  summary: 'Sign a trust decision as evidence',
  description: 'The decision is signed as stated; it is not compared with the graph.',
  body: readBy(
    Type.Object({
      decision: TrustDecision,
      graph_digest: omittable(Type.String({ description: 'else that of our graph' })),
    }),
    ['missing_decision', 'invalid_decision', 'evidence_build_failed'],
    ({ decision: given, graph_digest: digest }) => {
      const isThere = isJsonObject(given) && !isMissing(given);
      demand(isThere, 'missing_decision', 'missing_decision');
      demandForm(given);
      const decision =
        readTrustDecision(given) ?? refuse('evidence_build_failed', 'invalid_decision');
      const graph_digest = isMissing(digest) ? null : digest;
      const isText = graph_digest === null || typeof graph_digest === 'string';
      demand(isText, 'evidence_build_failed', 'invalid_graph_digest');
      return { decision, graph_digest };
    },
  ),
  answer: TrustEvidence,
});

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

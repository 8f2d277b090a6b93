/** The complete HTTP API: every declared operation is a route. */
import { SHA256 } from '../../base/crypto/digest.ts';
import { jsonText } from '../../base/json/write.ts';
import type { Operation } from '../../protocol/api/define.ts';
import { API, type Api, type OperationName } from '../../protocol/api/table.ts';
import { proveMembership } from '../../protocol/records/capability-disclosure.ts';
import { refuse } from '../../protocol/refusals.ts';
import { documentParts } from '../documents/documents.ts';
import { healthParts } from '../documents/health.ts';
import { type EdgePart, type EdgeParts, routeOf } from '../operations/operations.ts';
import { trustQuestionParts } from '../operations/trust-question.ts';
import { dashboardParts } from '../pages/dashboard.ts';
import { graphPageParts } from '../pages/graph-pages.ts';
import { pageParts } from '../pages/pages.ts';
import { trustPageParts } from '../pages/trust-pages.ts';
import { answerReply, jsonReply, refusalReply, streamReply } from '../reply.ts';
import { operatorOf, type Route } from '../request/route.ts';
import { nodeParts } from './nodes.ts';
import { recognitionParts } from './recognition.ts';

/** The operations that nobody but the edge answers. */
type Own = {
  [Name in OperationName]: Api[Name]['kind'] extends 'document' ? Name : never;
}[OperationName];

/** For clients refused because there are too many readers. */
const RETRY_AFTER_SECONDS = 5;

const PARTS: EdgeParts & Required<Pick<EdgeParts, Own>> = {
  ...healthParts,
  ...documentParts,
  ...nodeParts,
  ...recognitionParts,
  ...trustQuestionParts,
  ...trustPageParts,
  ...dashboardParts,
  ...graphPageParts,
  ...pageParts,
  /** The entries of the audit log as a stream of events [events-1]. */
  openEvents: {
    complete(opened, { after, follow }, request, edge) {
      if (!opened.ok) return answerReply(opened);
      const { log_size: logSize } = JSON.parse(opened.json) as { log_size: number };
      const { keyId } = operatorOf(request);
      const until = follow === '0' ? logSize : null;
      const body = edge.eventReaders.admit({ keyId, after: after ?? 0, until }, logSize);
      if (body !== null) return streamReply(body);
      const seconds = String(RETRY_AFTER_SECONDS);
      return refusalReply('too_many_event_readers', {}, 'Retry-After', seconds);
    },
  },
  /** Computed from the request alone [trust-6-4]. */
  proveMembership: {
    answer({ capability, capabilities, commitment, prover_sovereign_id: prover }, { now }, edge) {
      const { commitment_id: commitmentId } = commitment;
      const disclosure = { commitmentId, capability, capabilities, prover };
      const proof = proveMembership(disclosure, edge.runtime.uuid(), now, SHA256);
      return jsonReply(200, jsonText(proof ?? refuse('prove_failed', 'capability_not_in_list')));
    },
  },
};

export const ROUTES: readonly Route[] = Object.entries<Operation>(API).map(([given, operation]) => {
  const name = given as OperationName;
  return routeOf(name, operation, (PARTS[name] as EdgePart | undefined) ?? null);
});

import type { Edge } from '../http/edge.ts';
import { jsonReply, type Reply } from '../http/reply.ts';
import type { JsonObject } from '../json/value.ts';
import { jsonText } from '../json/write.ts';

/** Answers a public verification and tells what was found: all of it, or the members that are named. */
export function verdictReply(
  edge: Edge,
  event: string,
  answer: JsonObject,
  told: JsonObject = answer,
): Reply {
  logVerdict(edge, event, told);
  return jsonReply(200, jsonText(answer));
}

/** Anyone can cause a verification, so it is a log line and a count, never an audit entry. */
export function logVerdict(edge: Edge, event: string, verdict: JsonObject): void {
  edge.metrics.verified(event, verdict.accepted === true || verdict.valid === true);
  edge.logger.write('INFO', 'audit', `${event} ${jsonText(verdict)}`);
}

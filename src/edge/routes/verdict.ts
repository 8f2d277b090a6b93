import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import type { Edge } from '../edge.ts';
import { jsonReply, type Reply } from '../reply.ts';

/** Longer texts of callers are truncated in the log. */
const MAX_LOGGED_TEXT = 256;

/** Answers a public verification and logs its result: all of it, or the given members. */
export function verdictReply(
  edge: Edge,
  event: string,
  answer: JsonObject,
  logged: JsonObject = answer,
): Reply {
  logVerdict(edge, event, logged);
  return jsonReply(200, jsonText(answer));
}

/** Anyone can cause a verification, so it is logged and counted, never audited. */
export function logVerdict(edge: Edge, event: string, verdict: JsonObject): void {
  edge.metrics.verified(event, verdict.accepted === true || verdict.valid === true);
  edge.logger.write('INFO', 'audit', `${event} ${jsonText(shortened(verdict))}`);
}

function shortened(verdict: JsonObject): JsonObject {
  const values = Object.values(verdict);
  if (!values.some((value) => typeof value === 'string' && value.length > MAX_LOGGED_TEXT)) {
    return verdict;
  }
  return Object.fromEntries(
    Object.entries(verdict).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.slice(0, MAX_LOGGED_TEXT) : value,
    ]),
  );
}

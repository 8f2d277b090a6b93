import type { Edge } from '../http/edge.ts';
import { jsonReply, type Reply } from '../http/reply.ts';
import type { JsonObject } from '../json/value.ts';
import { jsonText } from '../json/write.ts';

/** Longer texts of a stranger are cut in the log. */
const MAX_LOGGED_TEXT = 256;

/** Answers a public verification and logs what was found: all of it, or the members that are named. */
export function verdictReply(
  edge: Edge,
  event: string,
  answer: JsonObject,
  logged: JsonObject = answer,
): Reply {
  logVerdict(edge, event, logged);
  return jsonReply(200, jsonText(answer));
}

/** Anyone can cause a verification, so it is a log line and a count, never an audit entry. */
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

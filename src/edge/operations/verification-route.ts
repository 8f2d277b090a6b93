/**
 * Routes of public, stateless verifications. Nothing is written: since anyone can cause a verification, it is logged
 * and counted, never audited. The authority is only asked which items are revoked here, and for the recognition policy.
 */
import { SHA256 } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { parseJson } from '../../base/json/parse.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import type { Operation } from '../../protocol/api/define.ts';
import type {
  Judged,
  RevocationKnowledge,
  Verification,
  Verifier,
} from '../../protocol/api/verification.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Edge } from '../edge.ts';
import { jsonReply, type Reply } from '../reply.ts';
import type { Route } from '../request/route.ts';

/** Longer texts of callers are truncated in the log. */
const MAX_LOGGED_TEXT = 256;

export function isVerification(operation: Operation): operation is Verification {
  return operation.kind === 'verification';
}

export function verifying({ event, judge }: Verification): Route['handle'] {
  // A reply without a promise is sent in the same turn, which is a third faster.
  return ({ body, now }, edge) => {
    const judged = judge(body, verifierOf(edge, now));
    return judged instanceof Promise
      ? judged.then((later) => verdictReply(later, event, edge))
      : verdictReply(judged, event, edge);
  };
}

function verdictReply({ verdict, logged }: Judged<unknown>, event: string, edge: Edge): Reply {
  edge.metrics.verified(event, logged.accepted === true || logged.valid === true);
  edge.logger.write('INFO', 'audit', `${event} ${jsonText(shortened(logged))}`);
  return jsonReply(200, jsonText(verdict as JsonObject));
}

function verifierOf(edge: Edge, now: number): Verifier {
  return {
    now,
    uuid: edge.runtime.uuid,
    verify: verifySignature,
    sha256: SHA256,
    isBounded: true,
    ownKeys: () => edge.settings.authorityKeys.trusted,
    ownName: edge.settings.genesis.network_name,
    async ownPolicy() {
      const answer = await edge.call('readRecognitionPolicy', {});
      if (!answer.ok) throw new Refusal('missing_recognition_policy');
      return parseJson(answer.json);
    },
    async askRevocations(question) {
      const answer = await edge.call('askRevocations', question);
      if (!answer.ok) throw new Refusal(answer.refusal, answer.details);
      return JSON.parse(answer.json) as RevocationKnowledge;
    },
  };
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

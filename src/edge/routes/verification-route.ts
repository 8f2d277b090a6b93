import { SHA256 } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { Refusal } from '../../base/refusal.ts';
import type { RevocationKnowledge } from '../../protocol/contract/inputs.ts';
import type { Verifier } from '../../protocol/verification.ts';
import type { Edge } from '../edge.ts';
import { jsonReply, type Reply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';

/** Longer texts of callers are truncated in the log. */
const MAX_LOGGED_TEXT = 256;

interface Judged {
  readonly verdict: JsonObject;
  readonly logged: JsonObject;
}

type Described = Pick<
  RouteEntry,
  'path' | 'summary' | 'description' | 'body' | 'example' | 'answer' | 'refusals'
>;

interface VerificationRoute extends Described {
  readonly event: string;
  /** Throws the refusal of an invalid body. */
  judge(body: JsonObject, by: Verifier, edge: Edge): Judged | Promise<Judged>;
}

/**
 * A route for public, stateless verification. Nothing is written: since anyone can cause a verification, it is logged
 * and counted, never audited.
 */
export function verificationRoute({ event, judge, ...described }: VerificationRoute): RouteEntry {
  return {
    ...described,
    method: 'POST',
    access: 'public',
    limit: 'VERIFY',
    // A reply without a promise is sent in the same turn, which is a third faster.
    handle({ body, now }, edge) {
      const judged = judge(body, verifierOf(edge, now), edge);
      return judged instanceof Promise
        ? judged.then((later) => verdictReply(later, event, edge))
        : verdictReply(judged, event, edge);
    },
  };
}

function verdictReply({ verdict, logged }: Judged, event: string, edge: Edge): Reply {
  edge.metrics.verified(event, logged.accepted === true || logged.valid === true);
  edge.logger.write('INFO', 'audit', `${event} ${jsonText(shortened(logged))}`);
  return jsonReply(200, jsonText(verdict));
}

/** A verdict with the names of the members to log. */
export function logging<Verdict extends JsonObject>(
  verdict: Verdict,
  ...names: readonly (keyof Verdict & string)[]
): Judged {
  return {
    verdict,
    logged: Object.fromEntries(names.map((name) => [name, verdict[name] ?? null])),
  };
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

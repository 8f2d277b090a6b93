/** What the edge adds to the answers to nodes [core-4-3], [core-4-4]. */
import { jsonText } from '../../base/json/write.ts';
import type { Answer } from '../../protocol/contract/calls.ts';
import { documentText, type PublishedDocument } from '../../protocol/contract/documents.ts';
import { cachedBySource } from '../documents/shared-build.ts';
import type { Edge } from '../edge.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { answerReply } from '../reply.ts';
import { countedFailure } from '../request/limited.ts';
import { addressBlock } from '../request/request-head.ts';
import type { RouteRequest } from '../request/route.ts';

type Accepted = Extract<Answer, { readonly ok: true }>;

/** Adds the published bulletin, the same text for all nodes, to the answer to a heartbeat. */
function withBulletin(answer: Accepted, { documents }: Edge): Accepted {
  const bulletin = documents.latest('bulletin');
  return bulletin === undefined ? answer : withMember(answer, memberOf(bulletin));
}

/** Adds the session that begins with a signed heartbeat; the answer is unchanged if none can begin now. */
function withSession(
  answer: Accepted,
  { sessions, metrics }: Edge,
  { now, body }: RouteRequest,
  sessionKey: string,
): Accepted {
  const { cert_id, node_public_key } = body;
  const node = { nodePublicKey: String(node_public_key), certId: String(cert_id) };
  const session = sessions.begin(node, sessionKey, now);
  metrics.session(session === null ? 'withheld' : 'begun');
  return session === null ? answer : withMember(answer, `,"session":${jsonText(session)}}`);
}

function withMember(answer: Accepted, member: string): Accepted {
  return { ...answer, json: `${answer.json.slice(0, -1)}${member}` };
}

const memberOf = cachedBySource(
  (bulletin: PublishedDocument) => `,"bulletin":${documentText(bulletin)}}`,
);

export const enrollmentParts = {
  join: {
    complete(answer, _sent, { remoteAddr, now }, edge) {
      if (answer.ok || answer.refusal !== 'invalid_invite_token') return answerReply(answer);
      return countedFailure(edge, 'JOIN_FAILURES', addressBlock(remoteAddr), now, () =>
        answerReply(answer),
      );
    },
  },
  heartbeat: {
    complete(answer, sent, request, edge) {
      if (!answer.ok) {
        if (answer.refusal === 'session_ended') edge.metrics.session('ended');
        return answerReply(answer);
      }
      const isSigned = request.node?.nonce !== null;
      edge.metrics.heartbeat(isSigned);
      const informed = sent.bulletin ? withBulletin(answer, edge) : answer;
      return answerReply(
        isSigned && sent.session_public_key !== null
          ? withSession(informed, edge, request, sent.session_public_key)
          : informed,
      );
    },
  },
} satisfies EdgeParts;

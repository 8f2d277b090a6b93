/** What the edge adds to the answers to nodes [core-4-3], [core-4-4]. */
import { setTimeout as pause } from 'node:timers/promises';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import type { Answer } from '../../protocol/contract/calls.ts';
import {
  DELETE_ENVELOPE_TOLERANCE,
  type NodeClaim,
  type OperatorClaim,
} from '../../protocol/contract/claims.ts';
import { documentText, type PublishedDocument } from '../../protocol/contract/documents.ts';
import { deleteEnvelopeText } from '../../protocol/records/node-proof.ts';
import { isSignedByAny } from '../../protocol/records/signed-record.ts';
import { Refusal } from '../../protocol/refusals.ts';
import { judgeTimestamp } from '../auth/signed-request.ts';
import { cachedBySource } from '../documents/shared-build.ts';
import type { Edge } from '../edge.ts';
import { listReply, openPage } from '../operations/listing.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { answerReply, jsonReply, piecewiseReply, type Reply, refusalReply } from '../reply.ts';
import { countedFailure, withProof } from '../request/limited.ts';
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

export const nodeParts = {
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
  registerAgent: {
    answer({ descriptor }, request, edge) {
      const { network_name: expected } = edge.settings.genesis;
      if (descriptor.network_name !== expected) {
        return refusalReply('descriptor_network_mismatch', { expected });
      }
      const key = descriptor.node_public_key;
      const signatureValid = isSignedByAny(descriptor, [key], verifySignature);
      // A request that will be refused for its proof is passed on without the one long and costly member.
      const isProven = signatureValid && (request.node?.verdict ?? 'valid') === 'valid';
      const sent = isProven ? descriptor : { ...descriptor, capabilities: [] };
      const { remoteAddr } = request;
      const answer = async (node: NodeClaim | null) => {
        const command = { descriptor: sent, signatureValid, node, remoteAddr };
        return answerReply(await edge.call('registerAgent', command));
      };
      return request.node === null ? answer(null) : withProof(request, edge, answer);
    },
  },
  listAgents: {
    async answer({ capability }, request, edge) {
      if (capability === null) return answerReply(await edge.call('countAgents', null));
      const page = openPage((asked) => edge.call('listAgents', { capability, ...asked }));
      const before = `"capability":${jsonText(capability)},`;
      return listReply({ member: 'agents', isCounted: true, before, page }, request);
    },
  },
  removeAgent: {
    answer({ node_public_key: nodePublicKey, envelope }, request, edge) {
      const { remoteAddr } = request;
      if (request.node === null) return removeByEnvelope(nodePublicKey, envelope, request, edge);
      return withProof(request, edge, async (node) => {
        const command = { nodePublicKey, node, envelope: null, remoteAddr };
        return answerReply(await edge.call('removeAgent', command));
      });
    },
  },
  countNodes: {
    answer: async (_asked, { operator }, edge) =>
      operator === null
        ? answerReply(await edge.call('countNodes', null))
        : rosterReply(operator, edge),
  },
} satisfies EdgeParts;

/** The agent registry [core-4-6]. */

async function removeByEnvelope(
  nodePublicKey: string,
  sent: JsonObject,
  { now, remoteAddr }: RouteRequest,
  edge: Edge,
): Promise<Reply> {
  const { signature, signedAtText, signedAt } = checkedEnvelope(sent, now);
  // Both values verbatim: the text is signed as it was sent [core-3-2].
  const text = deleteEnvelopeText(nodePublicKey, signedAtText);
  const valid = verifySignature(nodePublicKey, text, signature);
  const envelope = { signature, signedAt, valid };
  const command = { nodePublicKey, node: null, envelope, remoteAddr };
  return answerReply(await edge.call('removeAgent', command));
}

function checkedEnvelope(sent: JsonObject, now: number) {
  const { version, signature, signed_at: signedAtText } = sent;
  if (typeof signature !== 'string' || signature === '') {
    throw new Refusal('delete_signature_required');
  }
  if (signedAtText === undefined || signedAtText === null || signedAtText === '') {
    throw new Refusal('delete_signature_required');
  }
  if ((version ?? 'v1') !== 'v1') throw new Refusal('invalid_delete_version');
  if (typeof signedAtText !== 'string') throw new Refusal('invalid_signed_at');
  const { verdict, signedAt } = judgeTimestamp(signedAtText, now, DELETE_ENVELOPE_TOLERANCE);
  if (verdict === 'invalid_timestamp') throw new Refusal('invalid_signed_at');
  if (verdict === 'stale_timestamp') throw new Refusal('signed_at_outside_window');
  return { signature, signedAtText, signedAt };
}

/** The count of active nodes, and the roster for operators, read from the authority in pieces [core-4-15]. */

/** A long roster pauses for this share of the time spent on its pieces, to leave the threads to heartbeats. */
const REST = 0.25;
const LEAST_REST_MS = 1;
const LONGEST_REST_MS = 20;

/** Answers a roster of one piece at once; a longer one is sent while it is read. */
async function rosterReply(operator: OperatorClaim, edge: Edge): Promise<Reply> {
  const opened = await edge.call('openRoster', { operator, input: { ok: true, value: null } });
  if (!opened.ok) return answerReply(opened);
  const { roster, count } = JSON.parse(opened.json) as { roster: number; count: number };
  const first = await readPiece(roster, edge);
  const second = first === '' ? '' : await readPiece(roster, edge);
  const start = `{"count":${count},"nodes":{${first}`;
  return second === ''
    ? jsonReply(200, `${start}}}`)
    : piecewiseReply(
        rosterBody([start, `,${second}`], roster, edge),
        () => void edge.call('closeRoster', roster),
      );
}

/** The pieces already read, then all others. */
async function* rosterBody(
  ready: readonly string[],
  roster: number,
  edge: Edge,
): AsyncGenerator<string, void> {
  const { elapsed } = edge.runtime;
  yield* ready;
  for (let restMs = 0; ; ) {
    if (restMs >= LEAST_REST_MS) {
      await pause(Math.min(restMs, LONGEST_REST_MS));
      restMs = 0;
    }
    const askedAt = elapsed();
    const piece = await readPiece(roster, edge);
    restMs += REST * (elapsed() - askedAt);
    if (piece === '') break;
    yield `,${piece}`;
  }
  yield '}}';
}

/** Members of `nodes`; empty at the end. Another roster may have replaced this one meanwhile. */
async function readPiece(roster: number, edge: Edge): Promise<string> {
  const answer = await edge.call('readRoster', roster);
  if (!answer.ok) throw new Error('The roster was closed before it was read to its end');
  return answer.json;
}

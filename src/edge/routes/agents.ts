/** The agent registry [core-4-6]. */
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { DELETE_ENVELOPE_TOLERANCE, type NodeClaim } from '../../protocol/contract/claims.ts';
import { isSignedByAny } from '../../protocol/records/signed-record.ts';
import { Refusal } from '../../protocol/refusals.ts';
import { judgeTimestamp } from '../auth/signed-request.ts';
import type { Edge } from '../edge.ts';
import { listReply, openPage } from '../operations/listing.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { answerReply, type Reply, refusalReply } from '../reply.ts';
import { withProof } from '../request/limited.ts';
import type { RouteRequest } from '../request/route.ts';

export const agentParts = {
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
} satisfies EdgeParts;

async function removeByEnvelope(
  nodePublicKey: string,
  sent: JsonObject,
  { now, remoteAddr }: RouteRequest,
  edge: Edge,
): Promise<Reply> {
  const { signature, signedAtText, signedAt } = checkedEnvelope(sent, now);
  // Both values verbatim: the text is signed as it was sent [core-3-2].
  const text = `delete-agent|v1|${nodePublicKey}|${signedAtText}`;
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

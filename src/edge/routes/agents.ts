/** The agent registry [core-4-6]. */
import Type from 'typebox';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { jsonText } from '../../base/json/write.ts';
import { Refusal } from '../../base/refusal.ts';
import { AgentRegistered, AgentUnregistered } from '../../protocol/answers/enrollment.ts';
import { listAgents, readAgent } from '../../protocol/api/agents.ts';
import { DELETE_ENVELOPE_TOLERANCE, type NodeClaim } from '../../protocol/contract/claims.ts';
import { AgentDescriptor, readAgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { isSignedByAny } from '../../protocol/records/signed-record.ts';
import { judgeTimestamp } from '../auth/signed-request.ts';
import type { Edge } from '../edge.ts';
import { withProof } from '../limited.ts';
import { firstValue } from '../query.ts';
import { answerReply, type Reply, refusalReply } from '../reply.ts';
import { BODY_KEY_PROOF, type RouteEntry, type RouteRequest } from '../route.ts';
import { listReply, openPage } from './listing.ts';
import { operationRoute } from './operations.ts';

/** How far a descriptor's registered_at may be ahead of the clock, in milliseconds. */
const REGISTERED_AHEAD = 5 * 60_000;

const MAX_DESCRIPTOR_BODY = 64 * 1024;

const DeleteEnvelope = Type.Object({
  version: Type.Optional(Type.Literal('v1')),
  signed_at: Type.Optional(Type.String()),
  signature: Type.Optional(Type.String()),
});

export const agentRoutes: readonly RouteEntry[] = [
  {
    method: 'POST',
    path: '/agents',
    call: 'registerAgent',
    limit: 'AGENTS',
    proof: { ...BODY_KEY_PROOF, form: 'header if sent' },
    maxBodyBytes: MAX_DESCRIPTOR_BODY,
    summary: 'Register or refresh an agent',
    description:
      'The descriptor is verified against the public key inside it, and must not be older than the last one of its key.',
    body: AgentDescriptor,
    exampleNeeds: {
      what: 'a node with an active certificate, and its signature',
      otherwise: 'node_has_no_active_certificate',
    },
    answer: AgentRegistered,
    refusals: [
      'invalid_agent_descriptor',
      'descriptor_signature_required',
      'descriptor_expired',
      'descriptor_superseded',
      'descriptor_network_mismatch',
      'node_has_no_active_certificate',
      'node_key_revoked',
      'invalid_agent_signature',
      'insufficient_storage',
    ],
    handle: register,
  },
  { ...operationRoute('listAgents', listAgents), handle: list },
  operationRoute('readAgent', readAgent),
  {
    method: 'DELETE',
    path: '/agents/{node_public_key}',
    pathEnd: true,
    call: 'removeAgent',
    limit: 'AGENT_DELETE',
    proof: { keyOf, form: 'header if sent' },
    summary: 'Remove the registration of a node key',
    description: 'The envelope may be absent when the proof header is sent.',
    body: DeleteEnvelope,
    exampleNeeds: {
      what: 'the time and signature of a registered agent',
      otherwise: 'signed_at_outside_window',
    },
    answer: AgentUnregistered,
    refusals: [
      'delete_signature_required',
      'invalid_delete_version',
      'invalid_signed_at',
      'signed_at_outside_window',
      'invalid_agent_signature',
      'agent_not_registered',
    ],
    handle: (request, edge) =>
      request.node === null ? removeByEnvelope(request, edge) : removeByHeader(request, edge),
  },
];

async function list(request: RouteRequest, edge: Edge): Promise<Reply> {
  const capability = firstValue(request.query, 'capability');
  if (capability === null) return answerReply(await edge.call('countAgents', null));
  const page = openPage((asked) => edge.call('listAgents', { capability, ...asked }));
  const before = `"capability":${jsonText(capability)},`;
  return listReply({ member: 'agents', isCounted: true, before, page }, request);
}

function register(request: RouteRequest, edge: Edge): Reply | Promise<Reply> {
  const { now, remoteAddr } = request;
  const descriptor = readAgentDescriptor(request.body);
  if (descriptor === null) return refusalReply('invalid_agent_descriptor');
  if (descriptor.signatures.length === 0) return refusalReply('descriptor_signature_required');
  if (!isCurrent(descriptor, now)) return refusalReply('descriptor_expired');
  const { network_name: expected } = edge.settings.genesis;
  if (descriptor.network_name !== expected) {
    return refusalReply('descriptor_network_mismatch', { expected });
  }
  const key = descriptor.node_public_key;
  const signatureValid = isSignedByAny(descriptor, [key], verifySignature);
  // A request that will be refused for its proof is passed on without the one long and costly member.
  const isProven = signatureValid && (request.node?.verdict ?? 'valid') === 'valid';
  const sent = isProven ? descriptor : { ...descriptor, capabilities: [] };
  const answer = async (node: NodeClaim | null) => {
    const command = { descriptor: sent, signatureValid, node, remoteAddr };
    return answerReply(await edge.call('registerAgent', command));
  };
  return request.node === null ? answer(null) : withProof(request, edge, answer);
}

function isCurrent(descriptor: AgentDescriptor, now: number): boolean {
  const registeredAt = instantOf(descriptor.registered_at);
  return registeredAt - REGISTERED_AHEAD <= now && now <= instantOf(descriptor.expires_at);
}

function removeByHeader(request: RouteRequest, edge: Edge): Reply | Promise<Reply> {
  const nodePublicKey = keyOf(request);
  return withProof(request, edge, async (node) => {
    const command = { nodePublicKey, node, envelope: null, remoteAddr: request.remoteAddr };
    return answerReply(await edge.call('removeAgent', command));
  });
}

async function removeByEnvelope(request: RouteRequest, edge: Edge): Promise<Reply> {
  const nodePublicKey = keyOf(request);
  const { signature, signedAtText, signedAt } = checkedEnvelope(request);
  // Both values verbatim: the text is signed as it was sent [core-3-2].
  const text = `delete-agent|v1|${nodePublicKey}|${signedAtText}`;
  const valid = verifySignature(nodePublicKey, text, signature);
  const envelope = { signature, signedAt, valid };
  const command = { nodePublicKey, node: null, envelope, remoteAddr: request.remoteAddr };
  return answerReply(await edge.call('removeAgent', command));
}

function checkedEnvelope({ body, now }: RouteRequest) {
  const { version, signature, signed_at: signedAtText } = body;
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

function keyOf({ params }: RouteRequest): string {
  return params.node_public_key ?? '';
}

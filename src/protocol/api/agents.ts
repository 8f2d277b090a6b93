/** The agent registry [core-4-6]. */
import Type from 'typebox';
import { AgentList, AgentRegistered, AgentUnregistered } from '../answers/enrollment.ts';
import { AgentDescriptor, readAgentDescriptor } from '../records/agent-descriptor.ts';
import { instantOf } from '../records/record.ts';
import { refuse } from '../refusals.ts';
import { nodeCommand, publicList, publicQuery } from './define.ts';
import { readBy } from './members.ts';
import { text } from './parameters.ts';

/** How far a descriptor's registered_at may be ahead of the clock, in milliseconds. */
const REGISTERED_AHEAD = 5 * 60_000;

export const registerAgent = nodeCommand('POST /agents', {
  limit: 'AGENTS',
  proof: 'header if sent',
  maxBodyBytes: 64 * 1024,
  summary: 'Register or refresh an agent',
  description:
    'The descriptor is verified against the public key inside it, and must not be older than the last one of its key.',
  body: readBy(
    AgentDescriptor,
    ['invalid_agent_descriptor', 'descriptor_signature_required', 'descriptor_expired'],
    (body, { now }) => {
      const descriptor = readAgentDescriptor(body) ?? refuse('invalid_agent_descriptor');
      const { registered_at, expires_at, signatures } = descriptor;
      if (signatures.length === 0) refuse('descriptor_signature_required');
      const hasBegun = instantOf(registered_at) - REGISTERED_AHEAD <= now;
      if (!hasBegun || now > instantOf(expires_at)) refuse('descriptor_expired');
      return { descriptor };
    },
  ),
  exampleNeeds: {
    what: 'a node with an active certificate, and its signature',
    otherwise: 'node_has_no_active_certificate',
  },
  answer: AgentRegistered,
  refusals: [
    'descriptor_superseded',
    'descriptor_network_mismatch',
    'node_has_no_active_certificate',
    'node_key_revoked',
    'invalid_agent_signature',
    'insufficient_storage',
  ],
});

export const listAgents = publicList('GET /agents', {
  limit: 'SEARCH',
  list: { member: 'agents', isCounted: true },
  summary: 'Agents with a capability, newest first; without one, their number',
  query: { capability: text('Tag that must match exactly; without it only the count is answered') },
  answer: AgentList,
});

export const readAgent = publicQuery('GET /agents/{node_public_key}', {
  pathEnd: true,
  summary: 'Registration of a node key',
  exampleNeeds: { what: 'the key of a registered agent', otherwise: 'agent_not_registered' },
  answer: AgentDescriptor,
  refusals: ['agent_not_registered'],
});

const DeleteEnvelope = Type.Object({
  version: Type.Optional(Type.Literal('v1')),
  signed_at: Type.Optional(Type.String()),
  signature: Type.Optional(Type.String()),
});

export const removeAgent = nodeCommand('DELETE /agents/{node_public_key}', {
  limit: 'AGENT_DELETE',
  proof: 'header if sent',
  pathEnd: true,
  summary: 'Remove the registration of a node key',
  description: 'The envelope may be absent when the proof header is sent.',
  // With the header, the envelope is not even looked at.
  body: readBy(DeleteEnvelope, [], (envelope) => ({ envelope })),
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
});

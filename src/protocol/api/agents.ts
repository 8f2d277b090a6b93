/** Agents, as anyone finds them [core-4-6]. */
import { AgentList } from '../answers/enrollment.ts';
import { AgentDescriptor } from '../records/agent-descriptor.ts';
import { publicList, publicQuery } from './define.ts';
import { text } from './parameters.ts';

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

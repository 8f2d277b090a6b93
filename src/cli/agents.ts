/** `mesh-na agents`: finds agents by capability. */
import type { Command } from 'commander';
import type { AgentList } from '../answers/enrollment.ts';
import { createPublicClient } from '../client/public-client.ts';
import { addPublicOptions, type PublicOptions } from './options.ts';
import { alignedTable, printResult } from './output.ts';

export function addAgentsCommand(program: Command): void {
  const agents = program
    .command('agents')
    .description('list the agents with a capability; without one, only count them')
    .argument('[capability]', 'the exact capability')
    .action(runAgents);
  addPublicOptions(agents, ['mesh-na agents', 'mesh-na agents llm:chat --json']);
}

async function runAgents(capability: string | undefined, options: PublicOptions): Promise<void> {
  const list = await createPublicClient(options).agents(capability);
  printResult(options, list, agentsText(list));
}

function agentsText({ count, capability, agents = [] }: AgentList): string[] {
  const which = capability === null ? '' : ` with ${capability}`;
  if (agents.length === 0) return [`Registered agents${which}: ${count}.`];
  const rows = agents.map(({ agent_id, node_public_key, capabilities, endpoint, expires_at }) => [
    agent_id,
    `${endpoint.scheme}://${endpoint.host}:${endpoint.port}`,
    capabilities.join(','),
    expires_at,
    node_public_key,
  ]);
  return alignedTable([['AGENT', 'ENDPOINT', 'CAPABILITIES', 'EXPIRES', 'NODE KEY'], ...rows]);
}

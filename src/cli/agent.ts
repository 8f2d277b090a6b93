/** `mesh-na agent`: finds agents by capability, and registers that of a node. */
import type { Command } from 'commander';
import type { AgentList } from '../protocol/answers/enrollment.ts';
import { defineRegister, defineUnregister } from './agent-registration.ts';
import { addPublicOptions, type PublicOptions } from './options.ts';
import { printResult } from './output.ts';
import type { Line } from './printable.ts';
import { publicClient } from './server.ts';
import { addWideOption, idColumn, type TableOptions, tableOf, timeColumn } from './table.ts';

export function addAgentCommands(program: Command): void {
  const agent = program.command('agent').description('find agents, or register that of this node');
  defineList(agent.command('list'));
  defineRegister(agent.command('register'));
  defineUnregister(agent.command('unregister'));
}

function defineList(list: Command): void {
  list
    .description('list the agents with a capability; without one, only count them')
    .argument('[capability]', 'the exact capability')
    .action(runList);
  addPublicOptions(addWideOption(list), [
    'mesh-na agent list',
    'mesh-na agent list llm:chat --json',
  ]);
}

async function runList(
  capability: string | undefined,
  options: PublicOptions & TableOptions,
): Promise<void> {
  const list = await publicClient(options).agents(capability);
  printResult(options, list, listText(list, options));
}

const COLUMNS = [
  'AGENT',
  { title: 'ENDPOINT', rank: 4 },
  { title: 'CAPABILITIES', rank: 2 },
  timeColumn('EXPIRES', 3),
  idColumn('NODE KEY', 1),
];

function listText({ count, capability, agents = [] }: AgentList, options: TableOptions): Line[] {
  const which = capability === null ? '' : ` with ${capability}`;
  if (agents.length === 0) return [`Registered agents${which}: ${count}.`];
  const rows = agents.map(({ agent_id, node_public_key, capabilities, endpoint, expires_at }) => [
    agent_id,
    `${endpoint.scheme}://${endpoint.host}:${endpoint.port}`,
    capabilities.join(','),
    expires_at,
    node_public_key,
  ]);
  return tableOf(COLUMNS, rows, options);
}

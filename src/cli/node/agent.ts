/** `mesh-na agent`: finds agents by capability, and registers the agent of a node. */

import type { Command } from 'commander';
import { counted } from '../../base/counts.ts';
import { createNodeClient } from '../../client/node-client.ts';
import type { Agent } from '../../client/signing.ts';
import type { AgentList } from '../../protocol/answers/enrollment.ts';
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import { routeCommand } from '../connection/route-command.ts';
import { REACH, type Reach, serverOf } from '../connection/server.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { HIGHEST_PORT, jsonObject, wholeNumber } from '../kernel/options.ts';
import { type Line, printResult } from '../kernel/output.ts';
import {
  type Column,
  column,
  idColumn,
  type TableOptions,
  tableOf,
  timeColumn,
} from '../kernel/table.ts';
import {
  FOLDER,
  type FolderOptions,
  LONGEST_INTERVAL_SECONDS,
  readCertificate,
  readNodeKey,
} from './folder.ts';
import { beatUntilStopped } from './heartbeat.ts';

export function addAgentCommands(agent: Command): void {
  routeCommand(agent, 'list', 'listAgents', {
    about: 'list the agents with a capability; without one, show only their number',
    values: { capability: ['[capability]', 'the exact capability'] },
    options: [WIDE],
    examples: ['mesh-na agent list', 'mesh-na agent list llm:chat --json'],
    text: (list, _, options) => listText(list, options),
  });
  define(agent, 'register', {
    about: 'register the agent of this node under its capabilities, or refresh the registration',
    asks: FOLDER,
    options: REGISTER,
    examples: [
      'mesh-na agent register --agent-id a-1 --capability llm:chat --host 10.0.0.7 --port 7448',
      'mesh-na agent register --agent-id a-1 --host 10.0.0.7 --port 7448 --every 300',
    ],
    run: runRegister,
  });
  define(agent, 'unregister', {
    about: 'remove the registration of the agent of this node',
    asks: FOLDER,
    options: REACH,
    examples: ['mesh-na agent unregister'],
    run: runUnregister,
  });
}

const COLUMNS: readonly Column<AgentDescriptor>[] = [
  column('AGENT', (agent) => agent.agent_id),
  column('ENDPOINT', ({ endpoint: { scheme, host, port } }) => `${scheme}://${host}:${port}`, 4),
  column('CAPABILITIES', (agent) => agent.capabilities.join(','), 2),
  timeColumn('EXPIRES', (agent) => agent.expires_at, 3),
  idColumn('NODE KEY', (agent) => agent.node_public_key, 1),
];

function listText({ count, capability, agents = [] }: AgentList, options: TableOptions): Line[] {
  const which = capability === null ? '' : ` with ${capability}`;
  if (agents.length === 0) return [`${counted(count, 'agent')}${which} registered.`];
  return tableOf(COLUMNS, agents, options);
}

/** A year; clients of the network use ten minutes. */
const LONGEST_LIFETIME_SECONDS = 31_536_000;
/** The loop waits up to a tenth longer than its interval. */
const LATEST_REFRESH = 1.1;

const REGISTER = [
  option('--agent-id <id>', 'name of the agent', { required: true }),
  option('--capability <tag>', 'capability of the agent (repeatable)', { many: true }),
  option('--host <host>', 'host where it can be reached', { required: true }),
  option('--port <n>', 'port where it can be reached', {
    parse: wholeNumber(HIGHEST_PORT),
    required: true,
  }),
  option('--scheme <scheme>', 'protocol to reach it with', { fallback: 'ws' }),
  option('--lifetime-seconds <n>', 'lifetime of the registration', {
    parse: wholeNumber(LONGEST_LIFETIME_SECONDS),
    fallback: 600,
  }),
  option('--metadata <json>', 'free-form metadata', { parse: jsonObject }),
  option(
    '--every <seconds>',
    'keep refreshing at about this interval (±10 %) until stopped by a signal',
    { parse: wholeNumber(LONGEST_INTERVAL_SECONDS) },
  ),
  ...REACH,
] as const;

type RegisterOptions = FolderOptions & OptionsIn<typeof REGISTER>;

async function runRegister(options: RegisterOptions): Promise<void> {
  const { nodeDir, every, lifetimeSeconds, agentId } = options;
  if (every !== undefined && every * LATEST_REFRESH >= lifetimeSeconds) {
    throw usageFailure('--every must be at least a tenth shorter than --lifetime-seconds');
  }
  const client = createNodeClient({
    ...serverOf(options),
    key: onLocalFiles(() => readNodeKey(nodeDir)),
  });
  const { network_name } = onLocalFiles(() => readCertificate(nodeDir));
  const agent = agentOf(options, network_name);
  if (every !== undefined) {
    const beat = () => client.registerAgent(agent);
    return beatUntilStopped(options, { everySeconds: every, beat, noun: 'registrations' });
  }
  const registered = await client.registerAgent(agent);
  printResult(options, registered, [
    `Agent ${agentId} is registered until ${registered.expires_at}.`,
  ]);
}

function agentOf(options: RegisterOptions, network_name: string): Agent {
  const { agentId, capability = [], host, port, scheme, metadata, lifetimeSeconds } = options;
  return {
    agent_id: agentId,
    network_name,
    capabilities: capability,
    endpoint: { host, port, scheme },
    ...(metadata && { metadata }),
    lifetimeSeconds,
  };
}

async function runUnregister(options: FolderOptions & Reach): Promise<void> {
  const key = onLocalFiles(() => readNodeKey(options.nodeDir));
  const answer = await createNodeClient({ ...serverOf(options), key }).unregisterAgent();
  printResult(options, answer, [`The agent of node ${key.publicKey} is no longer registered.`]);
}

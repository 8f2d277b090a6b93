import type { Command } from 'commander';
import type { Roster } from '../client/operator-client.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { asJson, printResult } from './output.ts';
import type { Line } from './printable.ts';
import { tableOf } from './table.ts';

/** `node list`. */
export function defineNodeList(list: Command): void {
  list.description('list the active nodes, as an operator (standard)').action(runList);
  addOperatorOptions(list, ['mesh-na node list', 'mesh-na node list --json | jq .count']);
}

async function runList(options: OperatorOptions): Promise<void> {
  const roster = await operatorClient(options).nodes();
  printResult(options, asJson(roster), rosterText(roster));
}

function rosterText({ count, nodes }: Roster): Line[] {
  if (count === 0) return ['No node is active.'];
  const header = ['CERTIFICATE', 'KEY', 'ROLES', 'STATUS', 'LAST HEARTBEAT', 'EXPIRES'];
  const rows = Object.entries(nodes).map(([certId, node]) => [
    certId,
    node.node_public_key,
    node.roles.join(','),
    node.status,
    node.last_heartbeat,
    node.expires_at,
  ]);
  return tableOf([header, ...rows]);
}

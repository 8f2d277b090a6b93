import type { Command } from 'commander';
import type { OperatorClient, Roster } from '../client/operator-client.ts';
import { addNodeFilters, certificatePages, type NodeFilter } from './certificate-rows.ts';
import { eachOf } from './listing.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { asJson, printResult } from './output.ts';
import type { Line } from './printable.ts';
import { addWideOption, idColumn, type TableOptions, tableOf, timeColumn } from './table.ts';

interface ListOptions extends OperatorOptions, NodeFilter, TableOptions {}

/** `node list`. */
export function defineNodeList(list: Command): void {
  list
    .description('list the active nodes, or with --silent-since the silent ones (standard)')
    .action(runList);
  addOperatorOptions(addWideOption(addNodeFilters(list)), [
    'mesh-na node list --role role:anchor --health unwell',
    'mesh-na node list --silent-since 2h',
    'mesh-na node list --json | jq .count',
  ]);
}

async function runList(options: ListOptions): Promise<void> {
  const client = operatorClient(options);
  const { role, health, silentSince } = options;
  const isFiltered = [role, health, silentSince].some((filter) => filter !== undefined);
  const roster = isFiltered ? await filteredRoster(client, options) : await client.nodes();
  const none = isFiltered ? 'No node matches.' : 'No node is active.';
  printResult(options, asJson(roster), rosterText(roster, none, options));
}

/** The roster has active nodes alone, so the list of certificates is what is looked through. */
async function filteredRoster(
  client: OperatorClient,
  { role, health, silentSince }: NodeFilter,
): Promise<Roster> {
  const pages = certificatePages(client, {
    ...(silentSince === undefined ? { status: 'active' } : { silentSince }),
    ...(role !== undefined && { role }),
    ...(health !== undefined && { health }),
  });
  const nodes: Roster['nodes'] = {};
  for await (const row of eachOf('Certificates', pages, (each) => each)) {
    nodes[row.cert_id] = {
      node_public_key: row.node_public_key,
      roles: row.roles,
      status: row.node_status,
      last_heartbeat: row.last_contact,
      remote_addr: row.remote_addr,
      expires_at: row.expires_at,
    };
  }
  return { count: Object.keys(nodes).length, nodes };
}

const COLUMNS = [
  idColumn('CERTIFICATE'),
  idColumn('KEY', 1),
  { title: 'ROLES', rank: 3 },
  { title: 'STATUS', rank: 4 },
  timeColumn('LAST HEARTBEAT', 5),
  timeColumn('EXPIRES', 2),
];

function rosterText({ count, nodes }: Roster, none: string, options: TableOptions): Line[] {
  if (count === 0) return [none];
  const rows = Object.entries(nodes).map(([certId, node]) => [
    certId,
    node.node_public_key,
    node.roles.join(','),
    node.status,
    node.last_heartbeat,
    node.expires_at,
  ]);
  return tableOf(COLUMNS, rows, options);
}

/** `mesh-na node list` and `mesh-na node set`: what operators see of nodes, and how they name them. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { type CertificateFilters, certificatePages } from '../../client/certificate-search.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import type { NodeCount } from '../../protocol/answers/operators.ts';
import { isLabel, type NodeLabels } from '../../protocol/rows/node-description.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { routeCommand } from '../connection/route-command.ts';
import { define, option } from '../kernel/command.ts';
import { usageFailure } from '../kernel/errors.ts';
import { type ListOptions, listOptions, ordered, orderedRows, rowsOf } from '../kernel/list.ts';
import { asJson, printResult } from '../kernel/output.ts';
import { type Column, column, idColumn, tableOf, timeColumn } from '../kernel/table.ts';
import { certificateFilters } from './certificate.ts';
import {
  descriptionColumns,
  descriptionIn,
  descriptionLines,
  labelOption,
  nodeName,
} from './descriptions.ts';

const SET: readonly Option[] = [
  new Option('--no-name', 'remove the name'),
  labelOption('label to set (repeatable)'),
  option('--remove-label <key>', 'label to remove (repeatable)', { parse: labelKey, many: true }),
];

interface SetOptions extends OperatorOptions {
  /** False removes it. */
  readonly name?: string | false;
  readonly label?: NodeLabels;
  readonly removeLabel?: readonly string[];
}

/** What operators do with nodes, in the group of the commands of a node. */
export function addNodeViews(node: Command): void {
  const filters = certificateFilters();
  define(node, 'list', {
    about: 'list the active nodes, or with --silent-since the silent ones (standard)',
    asks: OPERATOR,
    options: [...filters.options, ...listOptions(COLUMNS)],
    examples: [
      'mesh-na node list --role role:anchor --health unwell',
      'mesh-na node list --silent-since 2h --sort last-heartbeat',
      'mesh-na node list --json | jq .count',
    ],
    run: (_, __, command) => listNodes(filters.sentIn(command), command.opts()),
  });

  routeCommand(node, 'set', 'describeNode', {
    about: 'set the name and labels of a node, which only operators see (standard)',
    values: {
      node_public_key: 'node key',
      name: ['--name <name>', 'the new name', nodeName],
    },
    options: SET,
    examples: [
      'mesh-na node set qk0yV3pW --name web-1 --label env=prod --label zone=eu-1',
      'mesh-na node set qk0yV3pW --remove-label zone',
    ],
    sent({ node_public_key }, options) {
      const { name, label = {}, removeLabel = [] } = options as SetOptions;
      const labels = { ...label, ...Object.fromEntries(removeLabel.map((key) => [key, null])) };
      if (name === undefined && Object.keys(labels).length === 0) {
        throw usageFailure('Give a --name, a --label or a --remove-label');
      }
      return {
        node_public_key,
        name: name === false ? '' : name,
        labels,
      };
    },
    text: (node) => [`key           ${node.node_public_key}`, ...descriptionLines(node)],
  });
}

function labelKey(text: string): string {
  if (isLabel(text) && !text.includes('=')) return text;
  throw new InvalidArgumentError('The key of a label is 1 to 63 of a-z 0-9 . _ / -');
}

async function listNodes(
  filters: CertificateFilters,
  options: OperatorOptions & ListOptions,
): Promise<void> {
  const client = operatorClient(options);
  const isPartial = Object.keys(filters).length > 0 || options.limit !== undefined;
  const { nodes = {} } = isPartial
    ? await filteredRoster(client, filters, options)
    : await client.countNodes();
  const none = isPartial ? 'No node matches.' : 'No node is active.';
  const rows = orderedRows(Object.entries(nodes), COLUMNS, options);
  const shown = { count: rows.length, nodes: Object.fromEntries(rows) };
  printResult(options, asJson(shown), rows.length === 0 ? [none] : tableOf(COLUMNS, rows, options));
}

type Nodes = NonNullable<NodeCount['nodes']>;

/** Filters the list of certificates, because the roster has only active nodes. */
async function filteredRoster(
  client: OperatorClient,
  filters: CertificateFilters,
  { sort, limit }: ListOptions,
): Promise<NodeCount> {
  const pages = certificatePages(client, {
    ...filters,
    ...(filters.silent_since === undefined && { status: 'active' }),
  });
  // A list that is not sorted is read only as far as needed.
  const most = sort === undefined && limit !== undefined ? { limit } : {};
  const rows = await rowsOf('Certificates', ordered(pages, [], most));
  const nodes: Nodes = Object.fromEntries(
    rows.map((row) => [
      row.cert_id,
      {
        node_public_key: row.node_public_key,
        ...descriptionIn(row),
        roles: row.roles,
        status: row.node_status,
        last_heartbeat: row.last_contact,
        remote_addr: row.remote_addr,
        expires_at: row.expires_at,
      },
    ]),
  );
  return { count: Object.keys(nodes).length, nodes };
}

const COLUMNS: readonly Column<[string, Nodes[string]]>[] = [
  idColumn('CERTIFICATE', ([certId]) => certId),
  ...descriptionColumns<[string, Nodes[string]]>(([, node]) => node),
  idColumn('KEY', ([, node]) => node.node_public_key, 1),
  column('ROLES', ([, node]) => node.roles.join(','), 3),
  column('STATUS', ([, node]) => node.status, 4),
  timeColumn('LAST HEARTBEAT', ([, node]) => node.last_heartbeat, 5),
  timeColumn('EXPIRES', ([, node]) => node.expires_at, 2),
];

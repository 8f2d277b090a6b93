/** `mesh-na node list`, `show`, `set` and `revoke`: what operators see of nodes and do with them. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { COLLATOR } from '../../base/ordered-list.ts';
import { type CertificateFilters, certificatePages } from '../../client/nodes.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import {
  type CertificateRow,
  isInUse,
  isSilentNode,
  reportsHealth,
} from '../../protocol/rows/certificate.ts';
import { isLabel, type NodeLabels } from '../../protocol/rows/node-description.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { resolveId, routeCommand } from '../connection/route-command.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { EXIT, failure, usageFailure } from '../kernel/errors.ts';
import { idArgument } from '../kernel/ids.ts';
import { type ListOptions, listOptions, printList, rowsOf } from '../kernel/list.ts';
import { asJson, printResult } from '../kernel/output.ts';
import {
  type Column,
  column,
  idColumn,
  type TableOptions,
  tableOf,
  timeColumn,
} from '../kernel/table.ts';
import {
  CERTIFICATE_COLUMNS,
  certificateFilters,
  REVOKE_NODE,
  revokeNamed,
} from './certificate.ts';
import {
  descriptionColumns,
  descriptionIn,
  descriptionLines,
  labelOption,
  nodeName,
  noticeTaken,
} from './descriptions.ts';

const SET: readonly Option[] = [
  new Option('--no-name', 'remove the name'),
  labelOption('label to set (repeatable)'),
  option('--remove-label <key>', 'label to remove (repeatable)', { parse: labelKey, many: true }),
];

const LIST = [option('--active', 'only nodes that have reported lately')] as const;

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
    about:
      'list the nodes, the worst first: silent ones, those that report a problem, others (standard)',
    asks: OPERATOR,
    options: [...LIST, ...filters.options, ...listOptions(COLUMNS)],
    examples: [
      'mesh-na node list --role role:anchor --health unwell',
      'mesh-na node list --silent-since 2h --sort last-heartbeat',
      'mesh-na node list --json | jq .count',
    ],
    run: (_, __, command) => listNodes(filters.sentIn(command), command.opts()),
  });

  define(node, 'show', {
    about: 'show one node: what it said last and when, and its certificates (standard)',
    asks: OPERATOR,
    args: [idArgument('node key')],
    options: [WIDE],
    examples: ['mesh-na node show web-1'],
    run: (options, [given = '']) => showNode(options, given),
  });

  define(node, 'revoke', {
    about: 'revoke all certificates of a node, and publish a new revocation list (privileged)',
    asks: OPERATOR,
    args: [idArgument('node key')],
    options: REVOKE_NODE,
    examples: [
      'mesh-na node revoke web-1 --reason key_compromise',
      'mesh-na node revoke web-1 --dry-run',
    ],
    run: (options, [given = '']) => revokeNamed({ ...options, key: given }),
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
    async show(node, { name }, options) {
      if (name) {
        const isOther = (row: CertificateRow) => row.node_public_key !== node.node_public_key;
        await noticeTaken(operatorClient(options), name, isOther);
      }
      const text = [`key           ${node.node_public_key}`, ...descriptionLines(node)];
      printResult(options, asJson(node), text);
    },
  });
}

function labelKey(text: string): string {
  if (isLabel(text) && !text.includes('=')) return text;
  throw new InvalidArgumentError('The key of a label is 1 to 63 of a-z 0-9 . _ / -');
}

/** The certificate in use of each node: of a key with several, the one that reported last. */
async function nodesIn(
  client: OperatorClient,
  filters: CertificateFilters,
): Promise<CertificateRow[]> {
  const nodes = new Map<string, CertificateRow>();
  for (const row of await rowsOf('Certificates', certificatePages(client, filters))) {
    const other = nodes.get(row.node_public_key);
    if (other === undefined || Date.parse(row.last_contact) > Date.parse(other.last_contact)) {
      nodes.set(row.node_public_key, row);
    }
  }
  return [...nodes.values()];
}

async function listNodes(
  filters: CertificateFilters,
  options: OperatorOptions & ListOptions & OptionsIn<typeof LIST>,
): Promise<void> {
  const client = operatorClient(options);
  const status = options.active ? 'active' : 'in_use';
  async function* worstFirst() {
    yield (await nodesIn(client, { ...filters, status })).sort(byHealth);
  }
  await printList(options, worstFirst(), {
    member: 'nodes',
    columns: COLUMNS,
    none: Object.keys(filters).length > 0 ? 'No node matches.' : 'There is no node.',
  });
}

/** The longest silent first, then who reports a problem, then the others by name. */
function byHealth(a: CertificateRow, b: CertificateRow): number {
  const [rankA, rankB] = [rankOf(a), rankOf(b)];
  if (rankA !== rankB) return rankA - rankB;
  const bySilence = rankA === 0 ? Date.parse(a.last_contact) - Date.parse(b.last_contact) : 0;
  return bySilence || COLLATOR.compare(a.name ?? a.cert_id, b.name ?? b.cert_id);
}

function rankOf(row: CertificateRow): number {
  if (isSilentNode(row)) return 0;
  return reportsHealth(row.node_status) ? 2 : 1;
}

/** What a silent node said last is not how it is. */
function stateOf(row: CertificateRow): string {
  return isSilentNode(row) ? row.status : row.node_status;
}

const COLUMNS: readonly Column<CertificateRow>[] = [
  idColumn('CERTIFICATE', (row) => row.cert_id),
  ...descriptionColumns<CertificateRow>((row) => row),
  idColumn('KEY', (row) => row.node_public_key, 1),
  column('ROLES', (row) => row.roles.join(','), 3),
  column('STATUS', stateOf, 8),
  timeColumn('LAST HEARTBEAT', (row) => row.last_contact, 6),
  timeColumn('EXPIRES', (row) => row.expires_at, 2),
  column('SAID', (row) => (isSilentNode(row) ? row.node_status : ''), 4),
];

async function showNode(options: OperatorOptions & TableOptions, given: string): Promise<void> {
  const client = operatorClient(options);
  const key = await resolveId(options, 'node key', given);
  const certificates = await rowsOf('Certificates', certificatePages(client, { key }));
  const row = certificates.find(({ status }) => isInUse(status)) ?? certificates[0];
  if (row === undefined) {
    throw failure(EXIT.refused, 'not_found', `No node has the key ${given}, or had it lately`);
  }
  const text = [
    `key           ${key}`,
    ...descriptionLines(row),
    `roles         ${row.roles.join(', ') || 'none'}`,
    `status        ${isInUse(row.status) ? stateOf(row) : row.status}`,
    `last contact  ${row.last_contact} from ${row.remote_addr}: ${row.node_status}`,
    '',
    ...tableOf(CERTIFICATE_COLUMNS, certificates, options),
    `mesh-na events --subject ${key} shows what happened to it.`,
  ];
  const node = { node_public_key: key, ...descriptionIn(row), roles: row.roles };
  const { status, last_contact, node_status, remote_addr } = row;
  const result = { ...node, status, last_contact, node_status, remote_addr };
  printResult(options, asJson({ ...result, certificates }), text);
}

/** `mesh-na node`: the commands of a node, whose key and certificate are in one folder. */

import { type Command, Option } from 'commander';
import { systemRuntime } from '../../base/runtime.ts';
import { type CertificateFilters, certificatePages } from '../../client/certificate-search.ts';
import { verifyText } from '../../client/keys.ts';
import { CERTIFICATE_PROBLEMS, certificateReason } from '../../client/network-trust.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import type { NodeCount } from '../../protocol/answers/operators.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { isSignedByAny } from '../../protocol/records/signed-record.ts';
import {
  addOperatorOptions,
  type OperatorOptions,
  operatorClient,
} from '../connection/operator.ts';
import { addServerOptions, urlOption } from '../connection/server.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { addListOptions, type ListOptions, ordered, orderedRows, rowsOf } from '../kernel/list.ts';
import {
  addFolderOptions,
  duration,
  type FolderOptions,
  LONGEST_INTERVAL_SECONDS,
  wholeNumber,
} from '../kernel/options.ts';
import { asJson, printResult } from '../kernel/output.ts';
import { type Column, column, idColumn, tableOf, timeColumn } from '../kernel/table.ts';
import { certificateFilters } from '../nodes/certificate.ts';
import { descriptionColumns, descriptionIn } from '../nodes/descriptions.ts';
import { defineNodeSet } from '../nodes/set.ts';
import { addHostnameOptions, runJoin, runRenew } from './enroll.ts';
import { keyPath, makeNodeKey, readAgentState, readCertificate, readNodeKey } from './folder.ts';
import { runHeartbeat } from './heartbeat.ts';
import { runAgent } from './run.ts';
import {
  addTrustOptions,
  type OfflineTrustOptions,
  updateNetwork,
  verifyHeldNetwork,
} from './trust.ts';

export function addNodeCommands(program: Command): void {
  const node = program
    .command('node')
    .description('act as a node of the network, or list its nodes');
  defineNodeList(node.command('list'));
  defineNodeSet(node.command('set'));

  const keygen = node
    .command('keygen')
    .description('create the key of this node')
    .action(runKeygen);
  addFolderOptions(keygen, ['mesh-na node keygen --node-dir ./node-1']);

  const join = node
    .command('join')
    .description('join with an invite token and save the certificate; creates a key if needed')
    .option('--token <token>', 'the invite token (other users of this machine may see it)')
    .option('--token-file <file>', 'file with the invite token, - for standard input')
    .addOption(validityOption());
  addHostnameOptions(join).action(runJoin);
  addFolderOptions(addTrustOptions(addProofOptions(join)), [
    'mesh-na node join --url https://na.example --root-key "$ROOT_KEY" --token-file invite.txt',
    'mesh-na node join --url https://na.example --genesis genesis.json --token-file invite.txt',
  ]);

  const heartbeat = node
    .command('heartbeat')
    .description('report to the authority that this node is alive')
    .option('--status <text>', 'what to report', 'healthy')
    .option(
      '--every <seconds>',
      'repeat at about this interval (±10 %) until stopped by a signal',
      wholeNumber(LONGEST_INTERVAL_SECONDS),
    )
    .action(runHeartbeat);
  addFolderOptions(addProofOptions(heartbeat), [
    'mesh-na node heartbeat',
    'mesh-na node heartbeat --every 120',
  ]);

  const renew = node
    .command('renew')
    .description('renew the certificate, with the same roles')
    .addOption(validityOption())
    .action(runRenew);
  addFolderOptions(addTrustOptions(addProofOptions(renew)), [
    'mesh-na node renew --validity-hours 72',
  ]);

  const run = node
    .command('run')
    .description(
      'keep this node enrolled: join, report, renew, and follow its network, until a signal; exit code 4 when it is revoked',
    )
    .option(
      '--token-file <file>',
      'file with the invite token, needed until there is a certificate',
    )
    .option('--status <text>', 'what to report', 'healthy')
    .option(
      '--on-change <command>',
      'shell command to run after changes, with their names as arguments: certificate, genesis, authority-keys, crl, policy',
    )
    .addOption(successionSpreadOption())
    .addOption(validityOption())
    .addOption(urlOption())
    .addOption(proofOption());
  addHostnameOptions(run).action(runAgent);
  addFolderOptions(addTrustOptions(run), [
    'mesh-na node run --url https://na.example --root-key "$ROOT_KEY" --token-file invite.txt',
    "mesh-na node run --on-change 'systemctl reload vpn; echo changed:'",
  ]);

  const status = node
    .command('status')
    .description(
      'verify the certificate and the revocation list; exit code 4 if the certificate is invalid',
    )
    .option(
      '--offline',
      'verify with the documents in the node folder, without asking the authority',
    )
    .option(
      '--crl <file>',
      'with --offline: revocation list to use instead of the one in the node folder',
    )
    .option(
      '--authority-keys <file>',
      'with --offline: /authority-keys of the network, to follow from the key in the node folder',
    )
    .action(runStatus);
  addFolderOptions(addTrustOptions(addServerOptions(status)), [
    'mesh-na node status --json',
    'mesh-na node status --offline --crl crl.json',
  ]);
}

function validityOption(): Option {
  return new Option(
    '--validity-hours <n>',
    'requested validity, limited by the invite (default: 168)',
  ).argParser(wholeNumber());
}

function successionSpreadOption(): Option {
  return new Option(
    '--succession-spread <duration>',
    "renew within this time after the authority's key was replaced because it was compromised",
  )
    .env('MESH_SUCCESSION_SPREAD')
    .default(600_000, '10m')
    .argParser(duration);
}

function addProofOptions(command: Command): Command {
  return addServerOptions(command).addOption(proofOption());
}

function proofOption(): Option {
  return new Option('--proof <form>', 'where to send the proof of the key')
    .choices(['body', 'header'])
    .default('body');
}

function runKeygen(options: FolderOptions): void {
  const { publicKey } = onLocalFiles(() => makeNodeKey(options.nodeDir));
  const keyFile = keyPath(options.nodeDir);
  printResult(options, { node_public_key: publicKey, key_file: keyFile }, [
    `Node key ${publicKey} created in ${keyFile}.`,
  ]);
}

async function runStatus(options: OfflineTrustOptions): Promise<void> {
  const { nodeDir, offline, crl: file, authorityKeys } = options;
  if (file !== undefined && !offline) throw usageFailure('--crl needs --offline');
  if (authorityKeys !== undefined && !offline) {
    throw usageFailure('--authority-keys needs --offline');
  }
  const certificate = onLocalFiles(() => readCertificate(nodeDir));
  const { publicKey } = onLocalFiles(() => readNodeKey(nodeDir));
  const { genesis, crl, trust } = await (offline ? verifyHeldNetwork : updateNetwork)(options);
  const entry = crl.revoked_certificates.find(
    ({ certificate_id }) => certificate_id === certificate.cert_id,
  );
  const agent = onLocalFiles(() => readAgentState(nodeDir));
  const now = systemRuntime.now();
  const unrevoked = certificateReason(certificate, { genesis, authority: trust, publicKey }, now);
  const reason = entry === undefined ? unrevoked : 'revoked';
  const authority_key = trust.currentKey();
  const isSignedNow = isSignedByAny(certificate, [authority_key], verifyText);
  const isExpired = now > instantOf(certificate.expires_at);
  const status = {
    cert_id: certificate.cert_id,
    node_public_key: certificate.node_public_key,
    network_name: certificate.network_name,
    authority_key,
    authority_keys_digest: trust.digest(),
    signed_by_current_key: isSignedNow,
    roles: certificate.roles,
    expires_at: certificate.expires_at,
    expired: isExpired,
    revoked: entry !== undefined,
    revocation_reason: entry?.reason ?? null,
    crl_sequence: crl.sequence,
    valid: reason === 'valid',
    reason,
    ...(agent !== null && { agent }),
  };
  printResult(options, status, [
    `certificate  ${status.cert_id}`,
    `key          ${status.node_public_key}`,
    `network      ${status.network_name}`,
    ...(trust.lastChange() === null
      ? []
      : [
          `authority    ${authority_key}${isSignedNow ? '' : ', which has not signed the certificate: run mesh-na node renew'}`,
        ]),
    `roles        ${status.roles.join(', ') || 'none'}`,
    `expires      ${status.expires_at}${isExpired ? ' (expired)' : ''}`,
    `revoked      ${entry === undefined ? 'no' : `${entry.reason}, ${entry.revoked_at}`} (list ${crl.sequence})`,
    `valid        ${reason === 'valid' ? 'yes' : `no: ${CERTIFICATE_PROBLEMS[reason]}`}`,
  ]);
  if (reason !== 'valid') throw failure(EXIT.refused, reason, '');
}

/** `node list`. */
function defineNodeList(list: Command): void {
  const filters = certificateFilters();
  list
    .description('list the active nodes, or with --silent-since the silent ones (standard)')
    .action((options) => runList(filters.sentIn(list), options));
  addOperatorOptions(addListOptions(filters.addTo(list), COLUMNS), [
    'mesh-na node list --role role:anchor --health unwell',
    'mesh-na node list --silent-since 2h --sort last-heartbeat',
    'mesh-na node list --json | jq .count',
  ]);
}

async function runList(
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

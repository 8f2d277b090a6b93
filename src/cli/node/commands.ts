/** `mesh-na node`: the commands of a node, whose key and certificate are in one folder; and `certificate verify`. */

import type { Command } from 'commander';
import { systemRuntime } from '../../base/runtime.ts';
import { verifyText } from '../../client/keys.ts';
import { CERTIFICATE_PROBLEMS } from '../../client/network-trust.ts';
import { readJoinCertificate } from '../../protocol/records/join-certificate.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { isSignedByAny } from '../../protocol/records/signed-record.ts';
import { REACH } from '../connection/server.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles } from '../kernel/errors.ts';
import { notHolding, readJsonFile } from '../kernel/files.ts';
import { publicKey } from '../kernel/options.ts';
import { printResult, printVerdict } from '../kernel/output.ts';
import { addNodeViews } from '../nodes/nodes.ts';
import { HOSTNAME, runJoin, runRenew, TOKEN, VALIDITY } from './enroll.ts';
import {
  FOLDER,
  type FolderOptions,
  keyPath,
  makeNodeKey,
  PROOF,
  readAgentState,
  readCertificate,
  readNodeKey,
} from './folder.ts';
import { BEAT, runHeartbeat } from './heartbeat.ts';
import { RUN, runAgent } from './run.ts';
import { judged, STATUS, statusNetwork, TRUST, type TrustOptions } from './trust.ts';

export function addNodeCommands(node: Command): void {
  addNodeViews(node);
  define(node, 'keygen', {
    about: 'create the key of this node',
    asks: FOLDER,
    examples: ['mesh-na node keygen --node-dir ./node-1'],
    run: runKeygen,
  });
  define(node, 'join', {
    about: 'join with an invite token and save the certificate; creates a key if needed',
    asks: FOLDER,
    options: [...TOKEN, VALIDITY, ...HOSTNAME, ...REACH, PROOF, ...TRUST],
    examples: [
      'mesh-na node join --url https://na.example --root-key "$ROOT_KEY" --token-file invite.txt',
      'mesh-na node join --url https://na.example --genesis genesis.json --token-file invite.txt',
    ],
    run: runJoin,
  });
  define(node, 'heartbeat', {
    about: 'report to the authority that this node is alive',
    asks: FOLDER,
    options: [...BEAT, ...REACH, PROOF],
    examples: ['mesh-na node heartbeat', 'mesh-na node heartbeat --every 120'],
    run: runHeartbeat,
  });
  define(node, 'renew', {
    about: 'renew the certificate, with the same roles',
    asks: FOLDER,
    options: [VALIDITY, ...REACH, PROOF, ...TRUST],
    examples: ['mesh-na node renew --validity-hours 72'],
    run: runRenew,
  });
  define(node, 'run', {
    about:
      'keep this node enrolled: join, report, renew, and follow its network, until a signal; exit code 4 when it is revoked',
    asks: FOLDER,
    options: [...RUN, ...HOSTNAME, ...TRUST],
    examples: [
      'mesh-na node run --url https://na.example --root-key "$ROOT_KEY" --token-file invite.txt',
      `mesh-na node run --on-change 'systemctl reload vpn; echo "changed: $*"'`,
    ],
    run: runAgent,
  });
  define(node, 'status', {
    about:
      'verify the certificate and the revocation list; exit code 4 if the certificate is invalid',
    asks: FOLDER,
    options: [...STATUS, ...REACH, ...TRUST],
    examples: ['mesh-na node status --json', 'mesh-na node status --offline --crl crl.json'],
    run: runStatus,
  });
}

function runKeygen(options: FolderOptions): void {
  const { publicKey } = onLocalFiles(() => makeNodeKey(options.nodeDir));
  const keyFile = keyPath(options.nodeDir);
  printResult(options, { node_public_key: publicKey, key_file: keyFile }, [
    `Node key ${publicKey} created in ${keyFile}.`,
  ]);
}

async function runStatus(options: TrustOptions & OptionsIn<typeof STATUS>): Promise<void> {
  const { nodeDir } = options;
  const certificate = onLocalFiles(() => readCertificate(nodeDir));
  const { publicKey } = onLocalFiles(() => readNodeKey(nodeDir));
  const network = await statusNetwork(options);
  const { crl, trust } = network;
  const { entry, reason } = judged(certificate, publicKey, network);
  const agent = onLocalFiles(() => readAgentState(nodeDir));
  const authority_key = trust.currentKey();
  const isSignedNow = isSignedByAny(certificate, [authority_key], verifyText);
  const isExpired = systemRuntime.now() > instantOf(certificate.expires_at);
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
    ...(typeof agent?.problem === 'string' ? [`node run     ${agent.problem}`] : []),
  ]);
  if (reason !== 'valid') throw failure(EXIT.refused, reason, '');
}

const VERIFY = [
  ...STATUS,
  option('--key <key>', 'public key that the other node has proven to hold', { parse: publicKey }),
  option('--role <role>', 'role that it must have (repeatable)', { many: true }),
] as const;

export function addCertificateVerification(certificate: Command): void {
  define(certificate, 'verify', {
    about: 'verify the certificate of another node; exit code 4 if it is not valid',
    asks: FOLDER,
    args: [['<file>', 'the certificate, - for standard input']],
    options: [...VERIFY, ...REACH, ...TRUST],
    examples: [
      'mesh-na certificate verify peer.json --node-dir ./mesh-node --role role:client',
      'mesh-na certificate verify peer.json --offline --genesis genesis.json --crl crl.json',
    ],
    run: runVerify,
  });
}

async function runVerify(
  options: TrustOptions & OptionsIn<typeof VERIFY>,
  [file = '']: readonly string[],
): Promise<void> {
  const certificate = readJoinCertificate(await readJsonFile(file));
  if (certificate === null) throw notHolding(file, 'the certificate of a node');
  const { cert_id, node_public_key, network_name, roles, expires_at } = certificate;
  const { key = node_public_key, role: wanted = [] } = options;
  const network = await statusNetwork(options);
  const { reason: found, entry } = judged(certificate, key, network);
  const lacks = wanted.some((role) => !roles.includes(role));
  const reason = found === 'valid' && lacks ? 'role_missing' : found;
  const verdict = {
    valid: reason === 'valid',
    reason,
    cert_id,
    node_public_key,
    network_name,
    roles,
    expires_at,
    revocation_reason: entry?.reason ?? null,
    crl_sequence: network.crl.sequence,
  };
  const what = `certificate ${cert_id} of ${node_public_key}, ${roles.join(', ') || 'no role'}`;
  printVerdict(options, verdict, what);
}

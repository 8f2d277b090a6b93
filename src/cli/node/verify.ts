/** `mesh-na certificate verify`: what a node, or anyone who knows the network, does with the certificate of another node. */

import type { Command } from 'commander';
import { readJoinCertificate } from '../../protocol/records/join-certificate.ts';
import { REACH } from '../connection/server.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { notHolding, readJsonFile } from '../kernel/files.ts';
import { publicKey } from '../kernel/options.ts';
import { printVerdict } from '../kernel/output.ts';
import { FOLDER } from './folder.ts';
import { judged, STATUS, statusNetwork, TRUST, type TrustOptions } from './trust.ts';

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

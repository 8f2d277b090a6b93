/** `node join` and `node renew`: save a certificate only if it is for this node and network. */

import { hostname } from 'node:os';
import { InvalidArgumentError, Option } from 'commander';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { jsonText } from '../../base/json/write.ts';
import { parseKeyText } from '../../base/keys/key-file.ts';
import { saysPrivate, saysPublic } from '../../base/keys/read-key.ts';
import { systemRuntime } from '../../base/runtime.ts';
import type { Authority } from '../../client/authority-signers.ts';
import { createKeptRequests, isLost, type SendKept } from '../../client/kept-request.ts';
import { CERTIFICATE_PROBLEMS, certificateReason } from '../../client/network-trust.ts';
import { createNodeClient } from '../../client/node-client.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { readJoinCertificate } from '../../protocol/records/join-certificate.ts';
import { isHostName } from '../../protocol/rows/node-description.ts';
import { saveAddress, serverOf } from '../connection/server.ts';
import { type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { bytesOf, notHolding, systemCode } from '../kernel/files.ts';
import { hours } from '../kernel/options.ts';
import { printNotice, printResult } from '../kernel/output.ts';
import {
  type FolderOptions,
  hasNodeKey,
  makeNodeKey,
  type NodeOptions,
  readCertificate,
  readNodeKey,
  recordPath,
  requestStorage,
  saveCertificate,
} from './folder.ts';
import { type TrustOptions, updateNetwork } from './trust.ts';

export const VALIDITY = option(
  '--validity-hours <n>',
  'requested validity, limited by the invite: hours, or a duration such as 7d (default: 168)',
  { parse: hours() },
);

type RenewOptions = NodeOptions & TrustOptions & OptionsIn<[typeof VALIDITY]>;

export const TOKEN = [
  option('--token <token>', 'the invite token (other users of this machine may see it)'),
  option('--token-file <file>', 'file with the invite token, - for standard input'),
] as const;

type JoinOptions = RenewOptions & HostnameOptions & OptionsIn<typeof TOKEN>;

interface Expected {
  readonly publicKey: string;
  readonly genesis: GenesisBlock;
  readonly authority: Authority;
}

export async function runJoin(options: JoinOptions): Promise<void> {
  const { nodeDir, validityHours } = options;
  const token = await inviteToken(options);
  // Verify first: a token must not be sent to the authority of another network.
  const { genesis, trust } = await updateNetwork(options);
  const key = onLocalFiles(() => (hasNodeKey(nodeDir) ? readNodeKey : makeNodeKey)(nodeDir));
  const audience = genesis.network_authority.public_key;
  const request = {
    invite_token: token,
    ...(validityHours && { validity_hours: validityHours }),
    ...reportedHostname(options),
  };
  const received = await sentOnce(options, `join ${jsonText(request)}`, (stamp, call) =>
    createNodeClient({ ...reached(options), ...stamp, key, audience }).join(request, call),
  );
  keepCertificate(options, received, { genesis, authority: trust, publicKey: key.publicKey });
  saveAddress(nodeDir, options.url);
}

export async function runRenew(options: RenewOptions): Promise<void> {
  const { nodeDir, validityHours } = options;
  const key = onLocalFiles(() => readNodeKey(nodeDir));
  const { cert_id } = onLocalFiles(() => readCertificate(nodeDir));
  const { genesis, trust } = await updateNetwork(options);
  const audience = genesis.network_authority.public_key;
  const request = { cert_id, ...(validityHours && { validity_hours: validityHours }) };
  const received = await sentOnce(options, `renew ${jsonText(request)}`, (stamp, call) =>
    createNodeClient({ ...reached(options), ...stamp, key, audience }).renew(request, call),
  );
  keepCertificate(options, received, { genesis, authority: trust, publicKey: key.publicKey });
}

/** Sends the same request again if the answer to an earlier run of this command was lost. */
async function sentOnce(
  { nodeDir }: FolderOptions,
  what: string,
  attempt: Parameters<SendKept>[1],
): Promise<unknown> {
  const send = createKeptRequests({ now: systemRuntime.now }, requestStorage(nodeDir));
  try {
    return await send(what, attempt);
  } catch (error) {
    if (isLost(error)) {
      printNotice(
        'The authority may have issued the certificate: run the same command again within five minutes, which sends the same request',
      );
    }
    throw error;
  }
}

function reached(options: NodeOptions) {
  return { ...serverOf(options), proof: options.proof };
}

async function inviteToken({ token, tokenFile }: JoinOptions): Promise<string> {
  if (token !== undefined && tokenFile === undefined) return keptFromKeys(token, '--token');
  if (token === undefined && tokenFile !== undefined) return inviteTokenIn(tokenFile);
  throw usageFailure('Give the invite token with either --token or --token-file');
}

/** Reads the single invite token in a file; `-` is standard input. */
export async function inviteTokenIn(file: string): Promise<string> {
  const held = (await bytesOf(file, MOST_BYTES.key)).toString();
  if (/^\S+$/.test(keptFromKeys(held, file).trim())) return held.trim();
  const cure = 'Give each node a file with one of the tokens.';
  throw notHolding(file, 'one invite token', held.trim().includes('\n') ? cure : null);
}

/** Rejects keys, because a token is sent to the authority and a key must never be. */
function keptFromKeys(text: string, place: string): string {
  if (!saysPrivate(text) && !saysPublic(text) && parseKeyText(text) === null) return text;
  const message = `${place} contains a key instead of an invite token: give the text that mesh-na invite create printed`;
  throw failure(EXIT.unusable, 'local_files', message);
}

/** Saves and prints the certificate if it passes the checks; otherwise saves nothing. */
function keepCertificate(options: FolderOptions, received: unknown, expected: Expected): void {
  const { nodeDir } = options;
  const certificate = readJoinCertificate(received);
  const problem =
    certificate === null
      ? 'it is malformed'
      : CERTIFICATE_PROBLEMS[certificateReason(certificate, expected, systemRuntime.now())];
  if (certificate === null || problem !== null) {
    const message = `The certificate was not saved: ${problem}`;
    throw failure(EXIT.refused, 'invalid_certificate', message);
  }
  try {
    saveCertificate(nodeDir, certificate);
  } catch (error) {
    // The token is used, so print the certificate; it can be saved once the folder is repaired.
    printResult({ json: true }, certificate, []);
    const place = recordPath(nodeDir, 'certificate');
    const message = `The certificate was issued, but ${place} cannot be written (${systemCode(error)}); it is on standard output`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  printResult(options, certificate, [
    `Saved certificate ${certificate.cert_id} of network "${certificate.network_name}" in ${recordPath(nodeDir, 'certificate')}.`,
    `Roles: ${certificate.roles.join(', ') || 'none'}. Expires: ${certificate.expires_at}.`,
  ]);
}

/** The host name that a node reports when it joins, so that its operators recognize the machine. */
export const HOSTNAME = [
  option(
    '--hostname <name>',
    'host name to report to the operators when joining (default: that of this machine)',
    { parse: hostName as (text: string) => string | false },
  ),
  new Option('--no-hostname', 'report no host name'),
] as const;

export interface HostnameOptions {
  /** False for none; by default that of the machine. */
  readonly hostname?: string | false;
}

/** A machine may have a host name that cannot be reported. */
export function reportedHostname(options: HostnameOptions): { readonly hostname?: string } {
  const { hostname: given = hostname() } = options;
  return given !== false && isHostName(given) ? { hostname: given } : {};
}

function hostName(text: string): string {
  if (isHostName(text)) return text;
  throw new InvalidArgumentError('It must be 1 to 253 letters, digits and . _ -');
}

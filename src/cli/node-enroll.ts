/** `node join` and `node renew`: a certificate is saved only if it is for this node and network. */
import { readFileSync } from 'node:fs';
import { certificateProblem } from '../client/check-certificate.ts';
import { createNodeClient } from '../client/node-client.ts';
import { createPublicClient } from '../client/public-client.ts';
import { type GenesisBlock, readGenesisBlock } from '../records/genesis.ts';
import { readJoinCertificate } from '../records/join-certificate.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from './exit-codes.ts';
import {
  certificatePath,
  hasNodeKey,
  makeNodeKey,
  readCertificate,
  readNodeKey,
  saveCertificate,
} from './node-folder.ts';
import type { FolderOptions, NodeOptions } from './options.ts';
import { printResult } from './output.ts';

interface RenewOptions extends NodeOptions {
  readonly validityHours?: number;
}

interface JoinOptions extends RenewOptions {
  readonly token?: string;
  readonly tokenFile?: string;
}

interface Expected {
  readonly publicKey: string;
  readonly genesis: GenesisBlock;
}

export async function runJoin(options: JoinOptions): Promise<void> {
  const { nodeDir, validityHours } = options;
  const token = inviteToken(options);
  const key = onLocalFiles(() => (hasNodeKey(nodeDir) ? readNodeKey : makeNodeKey)(nodeDir));
  // Before the join: a token must not be spent if the genesis cannot be read.
  const genesis = await readGenesis(options.url);
  const received = await createNodeClient({ ...options, key }).join({
    invite_token: token,
    ...(validityHours && { validity_hours: validityHours }),
  });
  keepCertificate(options, received, { genesis, publicKey: key.publicKey });
}

export async function runRenew(options: RenewOptions): Promise<void> {
  const { nodeDir, validityHours } = options;
  const key = onLocalFiles(() => readNodeKey(nodeDir));
  const { cert_id } = onLocalFiles(() => readCertificate(nodeDir));
  const genesis = await readGenesis(options.url);
  const received = await createNodeClient({ ...options, key }).renew({
    cert_id,
    ...(validityHours && { validity_hours: validityHours }),
  });
  keepCertificate(options, received, { genesis, publicKey: key.publicKey });
}

function inviteToken({ token, tokenFile }: JoinOptions): string {
  if (token !== undefined && tokenFile === undefined) return token;
  if (token === undefined && tokenFile !== undefined) {
    return onLocalFiles(() => readFileSync(tokenFile, 'utf8').trim());
  }
  throw usageFailure('Give the invite token by either --token or --token-file');
}

async function readGenesis(url: string): Promise<GenesisBlock> {
  const genesis = readGenesisBlock(await createPublicClient({ url }).genesis());
  if (genesis !== null) return genesis;
  throw failure(EXIT.failed, 'invalid_genesis', 'The authority serves no valid genesis');
}

/** Saves and prints the certificate if it passes the checks; otherwise saves nothing. */
function keepCertificate(options: FolderOptions, received: unknown, expected: Expected): void {
  const { nodeDir } = options;
  const certificate = readJoinCertificate(received);
  const problem =
    certificate === null ? 'it is malformed' : certificateProblem(certificate, expected);
  if (certificate === null || problem !== null) {
    const message = `The certificate was not saved: ${problem}`;
    throw failure(EXIT.failed, 'invalid_certificate', message);
  }
  onLocalFiles(() => saveCertificate(nodeDir, certificate));
  printResult(options, certificate, [
    `Certificate ${certificate.cert_id} of network "${certificate.network_name}" is saved in ${certificatePath(nodeDir)}.`,
    `Roles: ${certificate.roles.join(', ') || 'none'}. Expires: ${certificate.expires_at}.`,
  ]);
}

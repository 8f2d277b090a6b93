/**
 * How a node establishes trust in its network. The first command pins the root key; from then on, every genesis and
 * revocation list must be consistent with those in the node folder.
 */
import type { Command } from 'commander';
import { jsonText } from '../base/json/write.ts';
import { publicKeyOf } from '../base/keys/public-key.ts';
import { systemRuntime } from '../base/runtime.ts';
import {
  genesisProblem,
  isDistrusted,
  type Pin,
  revocationListProblem,
} from '../client/network-trust.ts';
import type { PublicClient } from '../client/public-client.ts';
import { type GenesisBlock, readGenesisBlock } from '../protocol/records/genesis.ts';
import {
  type CertificateRevocationList,
  readCertificateRevocationList,
} from '../protocol/records/revocation-list.ts';
import { isConfirmed, isTerminal } from './confirm.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from './exit-codes.ts';
import { notHolding, readGenesisFile, readJsonFile } from './json-file.ts';
import {
  assertNamesCurrentKey,
  type FollowedAuthority,
  followAuthority,
} from './node-authority-keys.ts';
import {
  genesisPath,
  type HeldNetwork,
  readHeldAuthority,
  readHeldNetwork,
  saveNetwork,
} from './node-folder.ts';
import { type FolderOptions, publicKey } from './options.ts';
import { printNote, printNotice } from './output.ts';
import { publicClient, type Reach } from './server.ts';

export interface TrustOptions extends FolderOptions, Reach {
  readonly rootKey?: string;
  readonly genesis?: string;
  readonly trustOnFirstUse?: boolean;
}

export interface VerifiedNetwork extends Pick<FollowedAuthority, 'trust' | 'authority'> {
  readonly genesis: GenesisBlock;
  readonly crl: CertificateRevocationList;
}

export function addTrustOptions(command: Command): Command {
  return command
    .option('--root-key <key>', 'root key of the network, which signed its genesis', publicKey)
    .option('--genesis <file>', 'genesis of the network, instead of the root key')
    .option(
      '--trust-on-first-use',
      'trust the root key that the authority presents, without asking',
    );
}

/**
 * Fetches the genesis, the succession statements and the revocation list, verifies them, and saves them in the node
 * folder.
 */
export async function updateNetwork(options: TrustOptions): Promise<VerifiedNetwork> {
  const held = onLocalFiles(() => readHeldNetwork(options.nodeDir));
  const given = await givenPin(options, held);
  const client = publicClient(options);
  const offered = await offeredGenesis(client);
  const pin = given ?? (await pinOnFirstUse(options, offered));
  assertPublic(pin, offered);
  refuse('invalid_genesis', 'genesis', genesisProblem(offered, pin, systemRuntime.now()));
  const { nodeDir } = options;
  const stored = { nodeDir, authorityKeys: held.authorityKeys };
  const { trust, authority, news } = followAuthority(offered, stored, await client.authorityKeys());
  assertNamesCurrentKey(offered, trust);
  const crl = await offeredList(client);
  refuseList(crl, { trust, authority, held: held.crl });
  const authorityKeys = trust.digest() === null ? null : trust.stored();
  onLocalFiles(() => saveNetwork(nodeDir, { genesis: offered, crl, authorityKeys }));
  if (news !== null) printNotice(news);
  return { genesis: offered, crl, trust, authority };
}

/** Compares the list with the held one, unless only a distrusted key signed that. */
function refuseList(
  crl: CertificateRevocationList,
  {
    trust,
    authority,
    held,
  }: Omit<VerifiedNetwork, 'genesis' | 'crl'> & { readonly held: HeldNetwork['crl'] },
): void {
  const isVoid = held !== null && isDistrusted(held, trust.keys());
  const known = { authority, held: isVoid ? null : held };
  refuse('invalid_crl', 'revocation list', revocationListProblem(crl, known, systemRuntime.now()));
}

/** Rejects the private root key, which looks like a public one. */
function assertPublic({ rootKey }: Pin, { root_public_key: root }: GenesisBlock): void {
  if (rootKey === root || publicKeyOf(Buffer.from(rootKey, 'base64')) !== root) return;
  throw usageFailure(
    '--root-key is the private root key of the network: give the public one from the root.pub file',
  );
}

/** The root key pinned by the folder or the command line, or on first use the one that the authority presents. */
export async function pinnedRootKey(options: TrustOptions): Promise<string> {
  const held = onLocalFiles(() => readHeldNetwork(options.nodeDir));
  const pin = await givenPin(options, held);
  return pin?.rootKey ?? (await updateNetwork(options)).genesis.root_public_key;
}

export interface OfflineTrustOptions extends TrustOptions {
  readonly offline?: boolean;
  readonly crl?: string;
  readonly authorityKeys?: string;
}

/** Verifies the documents in the node folder, or those in files instead, without network access. */
export async function verifyHeldNetwork(options: OfflineTrustOptions): Promise<VerifiedNetwork> {
  const held = onLocalFiles(() => readHeldNetwork(options.nodeDir));
  const pin = await givenPin(options, held);
  const genesis = pin?.genesis ?? null;
  const crl = options.crl === undefined ? held.crl : await listIn(options.crl);
  if (pin === null || genesis === null || crl === null) {
    const message = `${options.nodeDir} has no documents of the network yet: give --genesis and --crl, or run the command once without --offline`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  const now = systemRuntime.now();
  refuse('invalid_genesis', 'genesis', genesisProblem(genesis, pin, now));
  const { nodeDir, authorityKeys: file } = options;
  const { trust, authority } = followAuthority(
    genesis,
    { nodeDir, authorityKeys: held.authorityKeys },
    file === undefined ? null : await readJsonFile(file),
  );
  refuseList(crl, { trust, authority, held: held.crl });
  return { genesis, crl, trust, authority };
}

async function listIn(file: string): Promise<CertificateRevocationList> {
  const crl = readCertificateRevocationList(await readJsonFile(file));
  if (crl === null) throw notHolding(file, 'a revocation list');
  return crl;
}

/** The authority key from the genesis in the node folder, which proofs are bound to. */
export function pinnedAudience(nodeDir: string): string {
  const { genesis } = onLocalFiles(() => readHeldAuthority(nodeDir));
  if (genesis !== null) return genesis.network_authority.public_key;
  const cure = 'run mesh-na node status --root-key <key> once';
  const message = `${genesisPath(nodeDir)} does not exist, so the authority key is not known; ${cure}`;
  throw failure(EXIT.unusable, 'local_files', message);
}

/**
 * Which succession statements the node folder has; null if none. They are verified when they have changed since the last
 * call.
 */
export function heldDigests(nodeDir: string): () => string | null {
  let verified: { readonly text: string; readonly digest: string | null } | null = null;
  return () => {
    const { genesis, authorityKeys } = onLocalFiles(() => readHeldAuthority(nodeDir));
    if (genesis === null || authorityKeys === null) return null;
    const text = `${jsonText(genesis)}\n${authorityKeys}`;
    if (verified?.text !== text) {
      const { trust } = followAuthority(genesis, { nodeDir, authorityKeys }, null);
      verified = { text, digest: trust.digest() };
    }
    return verified.digest;
  };
}

/** The pin from the folder or the command line; null to pin on first use. */
async function givenPin(options: TrustOptions, held: HeldNetwork): Promise<Pin | null> {
  const { rootKey, genesis: file } = options;
  const given = file === undefined ? null : await readGenesisFile(file);
  const pinned = held.genesis ?? given;
  const keys = [held.genesis?.root_public_key, given?.root_public_key, rootKey];
  const [key, other] = new Set(keys.filter((each) => each !== undefined));
  if (other !== undefined) {
    const where = held.genesis === null ? '--genesis' : genesisPath(options.nodeDir);
    throw failure(EXIT.unusable, 'local_files', `${where} has root key ${key}, not ${other}`);
  }
  if (key !== undefined) return { rootKey: key, genesis: pinned };
  if (options.trustOnFirstUse || isTerminal()) return null;
  const message = 'The network is not known yet: give its --root-key, or its --genesis file';
  throw usageFailure(message);
}

/** Only the authority vouches for its root key, so a person has to decide. */
async function pinOnFirstUse(
  { trustOnFirstUse, json, url }: TrustOptions,
  { network_name, root_public_key }: GenesisBlock,
): Promise<Pin> {
  const shown = `The authority at ${url} belongs to network "${network_name}" with root key ${root_public_key}.`;
  if (trustOnFirstUse) {
    if (!json) printNote(`${shown} It is trusted from now on.`);
  } else if (!(await isConfirmed([shown], 'Trust it?'))) {
    throw failure(EXIT.refused, 'root_key_not_trusted', 'The root key was not accepted');
  }
  return { rootKey: root_public_key, genesis: null };
}

async function offeredGenesis(client: PublicClient): Promise<GenesisBlock> {
  const genesis = readGenesisBlock(await client.genesis());
  if (genesis !== null) return genesis;
  throw refusal('invalid_genesis', 'genesis', 'it is malformed');
}

async function offeredList(client: PublicClient): Promise<CertificateRevocationList> {
  const crl = readCertificateRevocationList(await client.crl());
  if (crl !== null) return crl;
  throw refusal('invalid_crl', 'revocation list', 'it is malformed');
}

function refuse(code: string, what: string, problem: string | null): void {
  if (problem !== null) throw refusal(code, what, problem);
}

function refusal(code: string, what: string, problem: string): Error {
  return failure(EXIT.refused, code, `The ${what} from the authority is rejected: ${problem}`);
}

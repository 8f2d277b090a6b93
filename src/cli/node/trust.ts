/**
 * How a node establishes trust in its network. The first command pins the root key; from then on, every genesis and
 * revocation list must be consistent with those in the node folder.
 */

import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { messageOf } from '../../base/error-message.ts';
import { jsonText } from '../../base/json/write.ts';
import { publicKeyOf } from '../../base/keys/public-key.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { replacedKeyProblem, trustFrom } from '../../client/agent-authority.ts';
import type { NetworkTrust } from '../../client/followed-keys.ts';
import {
  certificateReason,
  genesisProblem,
  isDistrusted,
  type Pin,
  revocationListProblem,
} from '../../client/network-trust.ts';
import { type GenesisBlock, readGenesisBlock } from '../../protocol/records/genesis.ts';
import type { JoinCertificate } from '../../protocol/records/join-certificate.ts';
import {
  type CertificateRevocationList,
  readCertificateRevocationList,
} from '../../protocol/records/revocation-list.ts';
import { followKeys, successionText } from '../connection/profiles.ts';
import { publicClient, type Reach } from '../connection/server.ts';
import { type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { notHolding, readGenesisFile, readJsonFile } from '../kernel/files.ts';
import { publicKey } from '../kernel/options.ts';
import { printNote, printNotice } from '../kernel/output.ts';
import { isConfirmed, isTerminal } from '../kernel/terminal.ts';
import {
  authorityKeysPath,
  type FolderOptions,
  genesisPath,
  type HeldNetwork,
  readHeldAuthority,
  readHeldNetwork,
  saveNetwork,
} from './folder.ts';

export const TRUST = [
  option('--root-key <key>', 'root key of the network, which signed its genesis', {
    parse: publicKey,
  }),
  option('--genesis <file>', 'genesis of the network, instead of the root key'),
  option('--trust-on-first-use', 'trust the root key that the authority presents, without asking'),
] as const;

export type TrustOptions = OptionsIn<typeof TRUST> & FolderOptions & Reach;

export interface VerifiedNetwork {
  readonly genesis: GenesisBlock;
  readonly crl: CertificateRevocationList;
  readonly trust: NetworkTrust;
}

/**
 * Fetches the genesis, the succession statements and the revocation list, verifies them, and saves them in the node
 * folder.
 */
export async function updateNetwork(options: TrustOptions): Promise<VerifiedNetwork> {
  const held = onLocalFiles(() => readHeldNetwork(options.nodeDir));
  const given = await givenPin(options, held);
  const client = publicClient(options);
  const offered = readable('genesis', readGenesisBlock(await client.readGenesis()));
  const pin = given ?? (await pinOnFirstUse(options, offered));
  assertPublic(pin, offered);
  refuse('genesis', genesisProblem(offered, pin, systemRuntime.now()));
  const { nodeDir } = options;
  const trust = heldTrust(nodeDir, offered, held.authorityKeys);
  const document = await client.authorityKeys();
  const news = document && followKeys(trust, document, offered).changes.at(-1);
  refuse('genesis', replacedKeyProblem(offered, trust));
  const crl = readable('revocation list', readCertificateRevocationList(await client.crl()));
  refuseList(crl, trust, held);
  // Statements that were withdrawn must not stay in the folder.
  const hasKeys = trust.digest() !== null || held.authorityKeys !== null;
  const authorityKeys = hasKeys ? trust.stored() : null;
  onLocalFiles(() => saveNetwork(nodeDir, { genesis: offered, crl, authorityKeys }));
  if (news) printNotice(successionText(news, true));
  return { genesis: offered, crl, trust };
}

/** Compares the list with the held one, unless only a distrusted key signed that. */
function refuseList(
  crl: CertificateRevocationList,
  trust: NetworkTrust,
  { crl: held }: HeldNetwork,
): void {
  const isVoid = held !== null && isDistrusted(held, trust.keys());
  const known = { authority: trust, held: isVoid ? null : held };
  refuse('revocation list', revocationListProblem(crl, known, systemRuntime.now()));
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

type OfflineTrustOptions = TrustOptions & OptionsIn<typeof STATUS>;

export const STATUS = [
  option('--offline', 'verify with the documents in the node folder, without asking the authority'),
  option(
    '--crl <file>',
    'with --offline: revocation list to use instead of the one in the node folder',
  ),
  option(
    '--authority-keys <file>',
    'with --offline: /authority-keys of the network, to follow from the key in the node folder',
  ),
] as const;

/** The network that a certificate is judged by: as its authority says now, or as the folder or files have it. */
export function statusNetwork(options: OfflineTrustOptions): Promise<VerifiedNetwork> {
  const { offline, crl, authorityKeys } = options;
  if (crl !== undefined && !offline) throw usageFailure('--crl needs --offline');
  if (authorityKeys !== undefined && !offline) {
    throw usageFailure('--authority-keys needs --offline');
  }
  return (offline ? verifyHeldNetwork : updateNetwork)(options);
}

/** What the documents of the network say of a certificate, and its entry on the revocation list. */
export function judged(
  certificate: JoinCertificate,
  publicKey: string,
  { genesis, crl, trust }: VerifiedNetwork,
) {
  const entry = crl.revoked_certificates.find(
    ({ certificate_id }) => certificate_id === certificate.cert_id,
  );
  const expected = { genesis, authority: trust, publicKey };
  const reason = certificateReason(certificate, expected, systemRuntime.now());
  return { entry, reason: entry === undefined ? reason : ('revoked' as const) };
}

/** Verifies the documents in the node folder, or those in files instead, without network access. */
async function verifyHeldNetwork(options: OfflineTrustOptions): Promise<VerifiedNetwork> {
  const held = onLocalFiles(() => readHeldNetwork(options.nodeDir));
  const pin = await givenPin(options, held);
  const genesis = pin?.genesis ?? null;
  const crl = options.crl === undefined ? held.crl : await listIn(options.crl);
  if (pin === null || genesis === null || crl === null) {
    const message = `${options.nodeDir} has no documents of the network yet: give --genesis and --crl, or run the command once without --offline`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  const now = systemRuntime.now();
  refuse('genesis', genesisProblem(genesis, pin, now));
  const trust = heldTrust(options.nodeDir, genesis, held.authorityKeys);
  const { authorityKeys: file } = options;
  if (file !== undefined) followKeys(trust, await readJsonFile(file), genesis);
  refuseList(crl, trust, held);
  return { genesis, crl, trust };
}

/** The trust from a verified genesis along the statements in the node folder. */
function heldTrust(nodeDir: string, genesis: GenesisBlock, stored: string | null): NetworkTrust {
  try {
    return trustFrom(genesis, { stored, now: systemRuntime.now });
  } catch (error) {
    const message = `${authorityKeysPath(nodeDir)}: ${messageOf(error)}`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
}

async function listIn(file: string): Promise<CertificateRevocationList> {
  const crl = readCertificateRevocationList(await readJsonFile(file, MOST_BYTES.list));
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
 * The trust along the succession statements in the node folder; null if there are none. They are verified when they have
 * changed since the last call.
 */
export function trustInFolder(nodeDir: string): () => NetworkTrust | null {
  let verified: { readonly text: string; readonly trust: NetworkTrust } | null = null;
  return () => {
    const { genesis, authorityKeys } = onLocalFiles(() => readHeldAuthority(nodeDir));
    if (genesis === null || authorityKeys === null) return null;
    const text = `${jsonText(genesis)}\n${authorityKeys}`;
    if (verified?.text !== text) {
      verified = { text, trust: heldTrust(nodeDir, genesis, authorityKeys) };
    }
    return verified.trust;
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

function readable<T>(what: Document, record: T | null): T {
  if (record !== null) return record;
  throw refusal(what, 'it is malformed');
}

function refuse(what: Document, problem: string | null): void {
  if (problem !== null) throw refusal(what, problem);
}

type Document = 'genesis' | 'revocation list';

function refusal(what: Document, problem: string): Error {
  const code = what === 'genesis' ? 'invalid_genesis' : 'invalid_crl';
  return failure(EXIT.refused, code, `The ${what} from the authority is rejected: ${problem}`);
}

/**
 * How a node establishes trust in its network. The first command pins the root key; from then on, every genesis and
 * revocation list must be consistent with those in the node folder.
 */

import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { messageOf } from '../../base/error-message.ts';
import { jsonText } from '../../base/json/write.ts';
import { publicKeyOf } from '../../base/keys/read-key.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { trustFrom } from '../../client/agent-authority.ts';
import { openAgentNetwork } from '../../client/agent-network.ts';
import type { AgentRecord } from '../../client/agent-storage.ts';
import { AuthorityError, isUnreachable } from '../../client/authority-error.ts';
import { isStoredTrust, type NetworkTrust } from '../../client/followed-keys.ts';
import { verifyText } from '../../client/keys.ts';
import {
  certificateReason,
  genesisProblem,
  isDistrusted,
  type Pin,
  revocationListProblem,
} from '../../client/network-trust.ts';
import type { PublicClient } from '../../client/public-client.ts';
import type { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';
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
  type FolderOptions,
  readHeldAuthority,
  readHeldList,
  readRecord,
  recordPath,
  saveRecords,
} from './folder.ts';

export const TRUST = [
  option('--root-key <key>', 'root key of the network, which signed its genesis', {
    parse: publicKey,
  }),
  option('--genesis <file>', 'genesis of the network, instead of the root key'),
  option('--trust-on-first-use', 'trust the root key that the authority presents, without asking'),
] as const;

export type TrustOptions = OptionsIn<typeof TRUST> & FolderOptions & Reach;

type VerifiedNetwork = Awaited<ReturnType<typeof updateNetwork>>;

/**
 * Follows the network as an agent does: fetches the genesis, the succession statements and the revocation list, verifies
 * them, and only then saves them in the node folder.
 */
export async function updateNetwork(options: TrustOptions) {
  const { nodeDir } = options;
  const client = publicClient(options);
  const pin = (await givenPin(options)) ?? (await pinOnFirstUse(options, client));
  if (pin.genesis === null) assertPublic(pin, await offeredGenesis(client));
  const saved = new Map<AgentRecord, string>();
  if (pin.genesis !== null) saved.set('genesis', `${jsonText(pin.genesis)}\n`);
  let news: AuthoritySuccession | undefined;
  const network = await openAgentNetwork({
    client,
    rootKey: pin.rootKey,
    verify: verifyText,
    now: systemRuntime.now,
    storage: {
      read: (name) => (name === 'policy' ? null : (saved.get(name) ?? readRecord(nodeDir, name))),
      write: (name, text) => void saved.set(name, text),
    },
    onRefused(what, problem) {
      // Without a delta, the whole list is fetched.
      if (what !== 'delta') throw refusal(what, problem);
    },
    onDamaged: (name) => noticeDamaged(nodeDir, name),
    onSuccession(statement, isInForce) {
      if (isInForce) news = statement;
    },
  }).catch((error: unknown) => {
    throw unusableFolder(nodeDir, error);
  });
  await network.refresh();
  onLocalFiles(() => saveRecords(nodeDir, saved));
  // A newcomer need not know by which keys its network came to this one.
  if (news !== undefined && pin.genesis !== null) printNotice(successionText(news, true));
  const genesis = network.authority.genesis();
  const trust = network.authority.trust();
  const crl = network.crl();
  if (genesis === null || trust === null || crl === null) {
    throw refusal('genesis', 'it is malformed');
  }
  return { genesis, crl, trust };
}

export function noticeDamaged(nodeDir: string, name: AgentRecord): void {
  printNotice(`${recordPath(nodeDir, name)} is damaged, and is fetched again`);
}

/** What an agent says of its files when it cannot start with them. */
export function unusableFolder(nodeDir: string, error: unknown): Error {
  return failure(EXIT.unusable, 'local_files', `${nodeDir}: ${messageOf(error)}`);
}

async function offeredGenesis(client: PublicClient): Promise<GenesisBlock> {
  const genesis = readGenesisBlock(await client.readGenesis());
  if (genesis === null) throw refusal('genesis', 'it is malformed');
  return genesis;
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
  const pin = await givenPin(options);
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
  if (offline) return verifyHeldNetwork(options);
  return updateNetwork(options).catch((error: unknown) => {
    if (error instanceof AuthorityError && isUnreachable(error)) {
      printNotice(`Without the authority, --offline judges by what ${options.nodeDir} holds`);
    }
    throw error;
  });
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
  const { nodeDir, authorityKeys: file } = options;
  const { authorityKeys } = onLocalFiles(() => readHeldAuthority(nodeDir));
  const pin = await givenPin(options);
  const genesis = pin?.genesis ?? null;
  const heldList = onLocalFiles(() => readHeldList(nodeDir));
  const crl = options.crl === undefined ? heldList : await listIn(options.crl);
  if (pin === null || genesis === null || crl === null) {
    const message = `${nodeDir} has no documents of the network yet: give --genesis and --crl, or run the command once without --offline`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  const now = systemRuntime.now();
  const problem = genesisProblem(genesis, pin, now);
  if (problem !== null) throw refusal('genesis', problem);
  const trust = heldTrust(nodeDir, genesis, authorityKeys);
  if (file !== undefined) followKeys(trust, await readJsonFile(file), genesis);
  // The list is compared with the held one, unless only a distrusted key signed that.
  const isVoid = heldList !== null && isDistrusted(heldList, trust.keys());
  const known = { authority: trust, held: isVoid ? null : heldList };
  const wrong = revocationListProblem(crl, known, now);
  if (wrong !== null) throw refusal('crl', wrong);
  return { genesis, crl, trust };
}

/** The trust from a verified genesis along the statements in the node folder. */
function heldTrust(nodeDir: string, genesis: GenesisBlock, stored: string | null): NetworkTrust {
  try {
    return trustFrom(genesis, { stored, now: systemRuntime.now });
  } catch (error) {
    throw unusableFolder(nodeDir, error);
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
  const message = `${recordPath(nodeDir, 'genesis')} does not exist, so the authority key is not known; ${cure}`;
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
    if (genesis === null || authorityKeys === null || !isStoredTrust(authorityKeys)) return null;
    const text = `${jsonText(genesis)}\n${authorityKeys}`;
    if (verified?.text !== text) {
      verified = { text, trust: heldTrust(nodeDir, genesis, authorityKeys) };
    }
    return verified.trust;
  };
}

/** The pin from the folder or the command line; null to pin on first use. */
async function givenPin(options: TrustOptions): Promise<Pin | null> {
  const held = onLocalFiles(() => readHeldAuthority(options.nodeDir));
  const { rootKey, genesis: file } = options;
  const given = file === undefined ? null : await readGenesisFile(file);
  const pinned = held.genesis ?? given;
  const keys = [held.genesis?.root_public_key, given?.root_public_key, rootKey];
  const [key, other] = new Set(keys.filter((each) => each !== undefined));
  if (other !== undefined) {
    const where = held.genesis === null ? '--genesis' : recordPath(options.nodeDir, 'genesis');
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
  client: PublicClient,
): Promise<Pin> {
  const { network_name, root_public_key } = await offeredGenesis(client);
  const shown = `The authority at ${url} belongs to network "${network_name}" with root key ${root_public_key}.`;
  if (trustOnFirstUse) {
    if (!json) printNote(`${shown} It is trusted from now on.`);
  } else if (!(await isConfirmed([shown], 'Trust it?'))) {
    throw failure(EXIT.refused, 'root_key_not_trusted', 'The root key was not accepted');
  }
  return { rootKey: root_public_key, genesis: null };
}

const REFUSED = {
  genesis: ['invalid_genesis', 'The genesis from the authority is rejected'],
  'authority-keys': ['invalid_authority_keys', 'The authority keys are rejected'],
  crl: ['invalid_crl', 'The revocation list from the authority is rejected'],
} as const;

function refusal(what: string, problem: string): Error {
  const [code, sentence] = REFUSED[what as keyof typeof REFUSED];
  return failure(EXIT.refused, code, `${sentence}: ${problem}`);
}

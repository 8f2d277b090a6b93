/**
 * The authority as a node agent knows it: the genesis of its network, and the statements by which its key was replaced
 * [authority-keys-7]. A genesis with another key is accepted only together with the statements that lead to the key.
 */
import type { VerifySignature } from '../base/crypto/primitives.ts';
import { jsonText } from '../base/json/write.ts';
import type { AuthoritySuccession } from '../protocol/records/authority-succession.ts';
import type { Bulletin } from '../protocol/records/bulletin.ts';
import { type GenesisBlock, genesisDigest, readGenesisBlock } from '../protocol/records/genesis.ts';
import type { AgentStorage } from './agent-storage.ts';
import { AuthorityError } from './authority-error.ts';
import {
  createNetworkTrust,
  isStoredTrust,
  type NetworkTrust,
  type NetworkTrustOptions,
} from './followed-keys.ts';
import { genesisProblem } from './network-trust.ts';
import { createVerifier } from './offline.ts';
import type { PublicClient } from './public-client.ts';
import { parsed, type Received } from './received.ts';
import { portableSha256 } from './sha256.ts';

export interface AgentAuthorityOptions {
  readonly client: Pick<PublicClient, 'readGenesis' | 'authorityKeys'>;
  readonly storage: AgentStorage;
  readonly rootKey: string;
  readonly verify: VerifySignature;
  now(): number;
  onRefused(what: 'genesis' | 'authority-keys', problem: string): void;
  /** What is stored cannot be read, and is fetched again. */
  onDamaged(what: 'authority-keys'): void;
  /** A statement came into force, or was announced. */
  onSuccession(statement: AuthoritySuccession, isInForce: boolean): void;
}

export async function openAgentAuthority(options: AgentAuthorityOptions) {
  const { client, storage, rootKey, verify, now, onRefused } = options;
  const stored = await storage.read('genesis');
  let genesis = stored === null ? null : readStoredGenesis(stored, options);
  let heldDigest = genesis === null ? '' : genesisDigest(genesis, portableSha256);
  const statements = await storage.read('authority-keys');
  const isDamaged = statements !== null && !isStoredTrust(statements);
  if (isDamaged) options.onDamaged('authority-keys');
  let trust = genesis && trustFrom(genesis, { stored: isDamaged ? null : statements, verify, now });
  let refused = { digests: '', at: Number.NEGATIVE_INFINITY };

  function currentKey(): string | null {
    return (genesis && trust)?.currentKey() ?? null;
  }

  async function offeredGenesis(): Promise<GenesisBlock | null> {
    const offered = readGenesisBlock(await client.readGenesis());
    const problem =
      offered === null
        ? 'it is malformed'
        : genesisProblem(offered, { rootKey, genesis }, now(), verify);
    if (problem !== null) onRefused('genesis', problem);
    return problem === null ? offered : null;
  }

  /** Follows the statements that the authority publishes, if any; false when they are refused. */
  async function followKeys(keys: NetworkTrust, offered: GenesisBlock): Promise<boolean> {
    const document = await offeredKeys(client);
    if (document === null) return true;
    const before = keys.digest();
    const { refusal, changes, next } = keys.follow(document, offered);
    if (refusal !== null) {
      onRefused('authority-keys', refusal.message);
      return false;
    }
    const isNews = keys.digest() !== before;
    if (isNews || changes.length > 0) await storage.write('authority-keys', keys.stored());
    const last = changes.at(-1) ?? null;
    if (last !== null) options.onSuccession(last, true);
    else if (isNews && next !== null) options.onSuccession(next, false);
    return true;
  }

  /** Until a statement is in force, the key of the genesis counts. */
  function trustIn(offered: GenesisBlock): NetworkTrust {
    if (trust !== null && trust.lastChange() !== null) return trust;
    return trustFrom(offered, { stored: trust?.stored() ?? null, verify, now });
  }

  async function accept(offered: GenesisBlock, wantsKeys: boolean): Promise<void> {
    const isOtherKey = offered.network_authority.public_key !== currentKey();
    const keys = trustIn(offered);
    if ((wantsKeys || isOtherKey) && !(await followKeys(keys, offered))) return;
    trust = keys;
    const problem = replacedKeyProblem(offered, keys);
    if (problem !== null) return onRefused('genesis', problem);
    const digest = genesisDigest(offered, portableSha256);
    if (digest === heldDigest) return;
    genesis = offered;
    heldDigest = digest;
    await storage.write('genesis', `${jsonText(offered)}\n`);
  }

  return {
    /** Null until first fetched. */
    genesis: (): GenesisBlock | null => genesis,
    /** Whose signatures count; null until there is a genesis. */
    trust: (): NetworkTrust | null => genesis && trust,
    currentKey,
    /** Whether statements that were followed before are lost, so that what an earlier key signed cannot be judged. */
    isDamaged,
    /** Fetches the genesis, and the statements if it is the first or names another key. Rejects when there is no answer. */
    async update(): Promise<void> {
      const offered = await offeredGenesis();
      if (offered !== null) await accept(offered, false);
    },
    /** The same with the statements in any case. */
    async updateAll(): Promise<void> {
      const offered = await offeredGenesis();
      if (offered !== null) await accept(offered, true);
    },
    /** Fetches what changed according to a bulletin, whose signature is not verified yet. Rejects when there is no answer. */
    async follow(bulletin: Bulletin): Promise<void> {
      const { genesis_digest, authority_keys_digest = null } = bulletin;
      const isOtherGenesis = genesis_digest !== heldDigest;
      const wantsKeys = () => namesOthers(trust, authority_keys_digest);
      if (!isOtherGenesis && !wantsKeys()) return;
      const digests = `${genesis_digest} ${authority_keys_digest}`;
      if (digests === refused.digests && Math.abs(now() - refused.at) < REFUSED_FOR_MS) return;
      const offered = isOtherGenesis ? await offeredGenesis() : null;
      // Statements are followed even if the genesis is refused: only they show that the root key signed two histories.
      const accepted = offered ?? genesis;
      if (accepted !== null) await accept(accepted, wantsKeys());
      if (genesis_digest !== heldDigest || wantsKeys()) refused = { digests, at: now() };
    },
  };
}

/** The trust that begins with a verified genesis. */
export function trustFrom(
  { network_name, root_public_key, network_authority }: GenesisBlock,
  options: Pick<NetworkTrustOptions, 'stored' | 'verify' | 'now'>,
): NetworkTrust {
  return createNetworkTrust({
    networkName: network_name,
    authorityKey: network_authority.public_key,
    rootKey: root_public_key,
    ...options,
  });
}

/** A genesis with a key that was replaced is an old copy. */
export function replacedKeyProblem(
  { network_authority: { public_key } }: GenesisBlock,
  trust: NetworkTrust,
): string | null {
  if (trust.currentKey() === public_key) return null;
  return `its authority key ${public_key} is not the current one by the succession statements`;
}

/**
 * Whether a bulletin names other statements than those that were followed. If it names none, statements that never came
 * into force were withdrawn; others stay.
 */
export function namesOthers(trust: NetworkTrust | null, named: string | null): boolean {
  const isWithdrawn = named !== null || trust?.lastChange() == null;
  return isWithdrawn && named !== (trust?.digest() ?? null);
}

/** What was refused is fetched again after this time: a wrong clock may have been the reason. */
const REFUSED_FOR_MS = 600_000;

/** Null from an authority that has no such document; an unreadable one is refused when it is followed. */
async function offeredKeys(client: Pick<PublicClient, 'authorityKeys'>): Promise<Received> {
  try {
    return await client.authorityKeys();
  } catch (error) {
    if (error instanceof AuthorityError && error.wireCode === 'unreadable_answer') return {};
    throw error;
  }
}

/** An expired genesis is read too, because the node may have been away when it was replaced. */
function readStoredGenesis(
  text: string,
  { rootKey, verify }: Pick<AgentAuthorityOptions, 'rootKey' | 'verify'>,
): GenesisBlock {
  const genesis = readGenesisBlock(parsed(text));
  if (genesis === null) throw new Error('The stored genesis is damaged');
  const { root_public_key } = genesis;
  if (root_public_key !== rootKey) {
    throw new Error(`The stored genesis is signed for root key ${root_public_key}, not ${rootKey}`);
  }
  if (createVerifier({ verify }).genesis(genesis, rootKey) !== 'valid') {
    throw new Error('The stored genesis is rejected: the root key did not sign it');
  }
  return genesis;
}

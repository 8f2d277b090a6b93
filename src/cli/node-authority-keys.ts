/** How the node commands follow the authority from one key to the next [authority-keys-7]. */
import { messageOf } from '../base/error-message.ts';
import { systemRuntime } from '../base/runtime.ts';
import type { Authority } from '../client/authority-signers.ts';
import { createNetworkTrust, type NetworkTrust } from '../client/followed-keys.ts';
import type { Received } from '../client/received.ts';
import type { AuthoritySuccession } from '../protocol/records/authority-succession.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import { EXIT, failure, onLocalFiles } from './exit-codes.ts';
import { authorityKeysPath } from './node-folder.ts';

export interface FollowedAuthority {
  readonly trust: NetworkTrust;
  /** Whose signatures count: before the first change, the key of the genesis. */
  readonly authority: Authority;
  /** What is new, in one line; null if nothing is. */
  readonly news: string | null;
}

/**
 * Follows the statements in the node folder and those received, from the root key of the genesis, which must be verified
 * already. Without any, the genesis alone counts.
 */
export function followAuthority(
  genesis: GenesisBlock,
  stored: StoredKeys,
  received: Received | null,
): FollowedAuthority {
  const trust = onLocalFiles(() => storedTrust(genesis, stored));
  const verdict = received === null ? null : trust.follow(received, genesis);
  if (verdict !== null && verdict.refusal !== null) {
    const message = `The authority keys are rejected: ${verdict.refusal.message}`;
    throw failure(EXIT.refused, 'invalid_authority_keys', message);
  }
  const isFollowed = trust.lastChange() !== null;
  const authority = isFollowed ? trust : genesis.network_authority.public_key;
  const change = verdict?.changes.at(-1);
  return { trust, authority, news: change === undefined ? null : successionText(change, true) };
}

/** Throws if the genesis names a key that was replaced: it is an old copy. */
export function assertNamesCurrentKey(
  { network_authority: { public_key } }: GenesisBlock,
  trust: NetworkTrust,
): void {
  if (trust.lastChange() === null || trust.currentKey() === public_key) return;
  const message = `The genesis from the authority is rejected: its authority key ${public_key} is not the current one by the succession statements`;
  throw failure(EXIT.refused, 'invalid_genesis', message);
}

export interface StoredKeys {
  readonly nodeDir: string;
  /** The text of the file; null if there is none. */
  readonly authorityKeys: string | null;
}

function storedTrust(
  { network_name, root_public_key, network_authority }: GenesisBlock,
  { nodeDir, authorityKeys }: StoredKeys,
): NetworkTrust {
  try {
    return createNetworkTrust({
      networkName: network_name,
      authorityKey: network_authority.public_key,
      rootKey: root_public_key,
      stored: authorityKeys,
      now: systemRuntime.now,
    });
  } catch (error) {
    throw new Error(`${authorityKeysPath(nodeDir)}: ${messageOf(error)}`);
  }
}

/** A statement in one line. */
export function successionText(statement: AuthoritySuccession, isInForce: boolean): string {
  const { kind, to_key, activates_at, overlap_until, distrusted_from } = statement;
  if (!isInForce) return `The authority's key will be replaced by ${to_key} on ${activates_at}`;
  if (kind === 'roll_back')
    return `The authority's key is ${to_key} again: its change was rolled back`;
  const replaced = `The authority's key was replaced by ${to_key} on ${activates_at}`;
  return kind === 'planned'
    ? `${replaced}, as planned; both keys sign until ${overlap_until}`
    : `${replaced}, because it was compromised; what only the old key signed from ${distrusted_from} on is void`;
}

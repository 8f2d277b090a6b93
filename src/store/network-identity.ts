/** The network to which a state belongs. No member changes when the genesis block is signed again. */
import Type, { type Static } from 'typebox';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import type { TableReader } from './tables.ts';

export const NetworkIdentity = Type.Object({
  network_name: Type.String(),
  root_public_key: Type.String(),
  authority_public_key: Type.String(),
});

export type NetworkIdentity = Static<typeof NetworkIdentity>;

export function networkOf(genesis: GenesisBlock): NetworkIdentity {
  const { network_name, root_public_key, network_authority } = genesis;
  return { network_name, root_public_key, authority_public_key: network_authority.public_key };
}

/** `place` names the location of the state, for messages. */
export function assertSameNetwork(
  stored: NetworkIdentity,
  given: NetworkIdentity,
  place: string,
): void {
  const [ours, theirs] = [given.network_name, stored.network_name];
  if (ours !== theirs) {
    throw new Error(`The state in ${place} belongs to the network "${theirs}", not to "${ours}"`);
  }
  for (const key of ['root_public_key', 'authority_public_key'] as const) {
    if (stored[key] === given[key]) continue;
    const name = key === 'root_public_key' ? 'root key' : 'authority key';
    throw new Error(
      `The state in ${place} belongs to another network "${theirs}", whose ${name} is ${stored[key]}`,
    );
  }
}

/** The kind of the subjects whose ids are the keys that an authority has had [authority-keys-8]. */
export const KEY_KIND = 'authority-key';

/** The key of the row that a state has if this network's authority key came by a succession. */
export function successorRow({ authority_public_key }: NetworkIdentity): [string, string] {
  return [KEY_KIND, authority_public_key];
}

/** The identity of a state never changes: a later key of its authority stands for the first one. */
export function asFounded(
  stored: NetworkIdentity,
  given: NetworkIdentity,
  isSuccessor: boolean,
): NetworkIdentity {
  const { authority_public_key } = stored;
  return isSuccessor ? { ...given, authority_public_key } : given;
}

/** The same, for a state that is read row by row. */
export async function asFoundedIn(
  tables: TableReader,
  stored: NetworkIdentity,
  given: NetworkIdentity,
): Promise<NetworkIdentity> {
  if (stored.authority_public_key === given.authority_public_key) return given;
  const [kind, key] = successorRow(given);
  const rows = tables.scan('subjects', (row) => row.key as readonly [string, string], {
    after: [kind, ''],
    atOnce: MOST_KEYS,
  });
  for await (const batch of rows) {
    const isSuccessor = batch.some(([ofKind, id]) => ofKind === kind && id === key);
    return asFounded(stored, given, isSuccessor);
  }
  return given;
}

/** More than an authority can have had. */
const MOST_KEYS = 300;

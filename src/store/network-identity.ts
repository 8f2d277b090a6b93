/** The network to which a state belongs. No member changes when the genesis block is signed again. */
import Type, { type Static } from 'typebox';
import type { GenesisBlock } from '../protocol/records/genesis.ts';

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

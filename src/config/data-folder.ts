/** Names inside the data folder, relative to it. */
export const FILES = {
  genesis: 'genesis.json',
  /** Names the operator keys, their tiers and which of their signatures are taken. */
  config: 'mesh-na.json',
  keys: 'keys',
  naKey: 'keys/na.key',
  /** Where a network is made before it is moved into place. */
  staging: '.init',
} as const;

/** Names inside the data folder, relative to it. */
export const FILES = {
  genesis: 'genesis.json',
  /** The file with operator keys, their tiers, and the accepted signature versions. */
  config: 'mesh-na.json',
  keys: 'keys',
  naKey: 'keys/na.key',
  /** Staging folder in which a network is built before it is moved into place. */
  staging: '.init',
} as const;

/** Names inside the data folder, relative to it. */
export const FILES = {
  genesis: 'genesis.json',
  /** Names the operator keys and their tiers. */
  config: 'mesh-na.json',
  keys: 'keys',
  naKey: 'keys/na.key',
} as const;

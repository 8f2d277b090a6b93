/** Names inside the data folder, relative to it. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

export const FILES = {
  genesis: 'genesis.json',
  /** The file with operator keys, their tiers, and the accepted signature versions. */
  config: 'mesh-na.json',
  keys: 'keys',
  naKey: 'keys/na.key',
  /** Staging folder in which a network is built before it is moved into place. */
  staging: '.init',
} as const;

/** The state, the marker that one existed, and the working folders of a move or an import. */
const TRACES = ['state', 'mesh-na.state.json', '.arriving', '.import'];

/**
 * A file that an existing network left in the folder, so that no other network may be created there; null if there is
 * none.
 */
export function traceOfNetwork(dataDir: string): string | null {
  const known = [FILES.keys, FILES.config, FILES.genesis, ...TRACES].map((name) =>
    join(dataDir, name),
  );
  const found = known.find((path) => existsSync(path));
  if (found !== undefined || !existsSync(dataDir)) return found ?? null;
  const key = readdirSync(dataDir).find((name) => /\.(?:key|pub)$/.test(name));
  return key === undefined ? null : join(dataDir, key);
}

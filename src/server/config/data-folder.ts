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

/** State, the mark that there was some, and what a move or an import builds it of. */
const TRACES = ['state', 'mesh-na.state.json', '.arriving', '.import'];

/** What a network has left in the folder, where no other may then be created. Null when there is nothing. */
export function traceOfNetwork(dataDir: string): string | null {
  const known = [FILES.keys, FILES.config, FILES.genesis, ...TRACES].map((name) =>
    join(dataDir, name),
  );
  const found = known.find((path) => existsSync(path));
  if (found !== undefined || !existsSync(dataDir)) return found ?? null;
  const key = readdirSync(dataDir).find((name) => /\.(?:key|pub)$/.test(name));
  return key === undefined ? null : join(dataDir, key);
}

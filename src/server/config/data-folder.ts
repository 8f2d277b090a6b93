/** Names inside the data folder, relative to it, and whether files can be created where the settings put them. */
import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

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

/** `label` names the setting as it was given. */
export function demandFolder(label: string, folder: string): void {
  const found = statOf(folder);
  if (found === null) {
    throw new Error(
      `${label} needs the folder ${folder}, which does not exist; create it, or name another`,
    );
  }
  if (!found.isDirectory()) {
    throw new Error(`${label} needs the folder ${folder}, which is not a folder; name another`);
  }
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    throw new Error(
      `${label} needs the folder ${folder}, which this user cannot read and write; give the user of this process access, or name another`,
    );
  }
}

/** Checks a file that will be written and may already exist. */
export function demandFile(label: string, path: string): void {
  if (statOf(path)?.isDirectory() === true) {
    throw new Error(`${label} names ${path}, which is a folder; name a file`);
  }
  demandFolder(label, dirname(path));
}

function statOf(path: string) {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

/**
 * A mark in the data directory that its network has state, with the identity of that network. Without it, an empty or
 * missing database would start a new network with the keys of one that has issued certificates.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Value from 'typebox/value';
import { NetworkIdentity } from './network-identity.ts';
import { unwritable } from './unwritable.ts';

const MARK_FILE = 'mesh-na.state.json';

/** Marks the directory as in use. The file is written atomically. */
export function markInUse(dataDir: string, network: NetworkIdentity): void {
  const path = join(dataDir, MARK_FILE);
  if (existsSync(path)) return;
  const fresh = `${path}.new`;
  try {
    writeFileSync(fresh, `${JSON.stringify(network, null, 2)}\n`, { mode: 0o600, flush: true });
    renameSync(fresh, path);
  } catch (cause) {
    throw unwritable(path, cause);
  }
}

/** `missing` says what was found instead of the state, and completes the sentence. */
export function assertNeverUsed(dataDir: string, missing: string): void {
  const mark = readMark(dataDir);
  if (mark === null) return;
  const whose = mark === 'unreadable' ? '' : ` by the network "${mark.network_name}"`;
  throw new Error(`The data directory was in use${whose}, but ${missing}`);
}

function readMark(dataDir: string): NetworkIdentity | 'unreadable' | null {
  const path = join(dataDir, MARK_FILE);
  if (!existsSync(path)) return null;
  try {
    const mark: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return Value.Check(NetworkIdentity, mark) ? mark : 'unreadable';
  } catch {
    return 'unreadable';
  }
}

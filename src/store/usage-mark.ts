/**
 * A mark in the data directory that its network has state, with the identity of that network. Without it, an empty or
 * missing database would start a new network with the keys of one that has issued certificates.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Value from 'typebox/value';
import { replaceFile } from '../base/durable-file.ts';
import { NetworkIdentity } from './network-identity.ts';
import { unwritable } from './unwritable.ts';

const MARK_FILE = 'mesh-na.state.json';

/** Marks the directory as in use; the mark survives a power failure. */
export function markInUse(dataDir: string, network: NetworkIdentity): void {
  const path = join(dataDir, MARK_FILE);
  if (existsSync(path)) return;
  try {
    replaceFile(path, `${JSON.stringify(network, null, 2)}\n`, 0o600);
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

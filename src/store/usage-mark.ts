/**
 * A mark in the data directory that its network has state, with the identity of that network. Without it, an empty or
 * missing database would start a new network with the keys of one that has issued certificates.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Value from 'typebox/value';
import { replaceFile } from '../base/durable-file.ts';
import { NetworkIdentity } from './network-identity.ts';

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

/** The error for a state file that exists, as far as this user can see, but cannot be read. */
export function unreadable(path: string, cause: unknown): Error {
  const { code } = cause as NodeJS.ErrnoException;
  const cure =
    code === 'EACCES' || code === 'EPERM'
      ? ': run this as the user of the authority'
      : ': look at the disk';
  return new Error(`${path} cannot be read (${code})${cure}`);
}

/** The error for a state file that cannot be written. */
export function unwritable(path: string, cause: unknown): Error {
  const { code } = cause as NodeJS.ErrnoException;
  return new Error(
    `The state in the data directory cannot be used: ${path} cannot be written (${code})`,
  );
}

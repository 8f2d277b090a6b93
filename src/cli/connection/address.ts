/**
 * Where a command finds the authority that no option or variable names: a node remembers the address at which it joined,
 * and a data folder in use says where its authority serves.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { readNamedFile } from '../../base/named-file.ts';
import { DATA_DIR } from '../kernel/command.ts';
import { replaceFile } from '../kernel/files.ts';
import { serverUrl } from '../kernel/options.ts';

const MOST_BYTES = 4096;

function addressPath(folder: string): string {
  return join(folder, 'address');
}

export function saveAddress(folder: string, url: string): void {
  ifPossible(() => replaceFile(addressPath(folder), `${url}\n`));
}

export function removeAddress(folder: string): void {
  ifPossible(() => rmSync(addressPath(folder), { force: true }));
}

/** Nothing depends on it but convenience, so a folder that cannot be written needs none: commands then need --url. */
function ifPossible(change: () => void): void {
  try {
    change();
  } catch {
    // A start or a stop goes on.
  }
}

/** Sets the address of a command for which neither an option nor a variable gives one. */
export function findAddress(command: Command): void {
  if (command.getOptionValueSource('url') !== 'default') return;
  const { nodeDir, dataDir = DATA_DIR.defaultValue } = command.opts();
  for (const folder of [nodeDir, dataDir]) {
    const url = typeof folder === 'string' ? addressIn(folder) : null;
    if (url === null) continue;
    command.setOptionValueWithSource('url', url, 'config');
    return;
  }
}

function addressIn(folder: string): string | null {
  const path = addressPath(folder);
  if (!existsSync(path)) return null;
  try {
    return serverUrl(readNamedFile(path, MOST_BYTES).toString().trim());
  } catch {
    return null;
  }
}

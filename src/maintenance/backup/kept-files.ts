/** The backups of a schedule in their folder: only files of its own names are counted, and ever removed. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';

/** Files of other names in a folder of backups are left alone. */
export const SUFFIX = '.backup';

/** Names of files that are not complete end so. */
export const PARTIAL = '.partial';

export interface KeptFiles {
  /** Where a backup of this moment is written, milliseconds since the epoch. */
  pathAt(at: number): string;
  /** When the newest was made, or null; a file gets its name only once it is verified. */
  newest(): Promise<number | null>;
  /** Removes all but this many, the oldest first, and never the one of this moment. */
  prune(keep: number, made: number): Promise<void>;
  /** Removes what a killed process has left incomplete. */
  removePartial(): Promise<void>;
}

/** Several networks may share a folder: names begin with that of the network and a digest of its root key. */
export function createKeptFiles(folder: string, genesis: GenesisBlock): KeptFiles {
  const digest = sha256Hex(genesis.root_public_key).slice(0, 8);
  const shown = genesis.network_name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
  const prefix = `${shown}-${digest}-`;
  const nameAt = (at: number) => `${prefix}${stampOf(at)}${SUFFIX}`;

  /** The names of files, and when they were made, the newest first. */
  async function ownFiles(): Promise<{ name: string; at: number }[]> {
    const entries = await readdir(folder, { withFileTypes: true });
    const own = entries.flatMap((entry) => {
      const at = entry.isFile() ? instantIn(entry.name, prefix) : null;
      return at === null ? [] : [{ name: entry.name, at }];
    });
    return own.sort((a, b) => b.at - a.at);
  }

  return {
    pathAt: (at) => join(folder, nameAt(at)),
    async newest() {
      return (await ownFiles())[0]?.at ?? null;
    },
    async prune(keep, made) {
      const others = (await ownFiles()).filter(({ name }) => name !== nameAt(made));
      for (const { name } of others.slice(keep - 1)) await rm(join(folder, name));
    },
    async removePartial() {
      for (const entry of await readdir(folder, { withFileTypes: true })) {
        const { name } = entry;
        if (!name.startsWith('.') || !name.endsWith(PARTIAL) || !entry.isFile()) continue;
        if (instantIn(name.slice(1, -PARTIAL.length), prefix) === null) continue;
        await rm(join(folder, name), { force: true });
      }
    },
  };
}

/** Whole seconds of UTC, as `20260301T100000Z`. */
function stampOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`;
}

const STAMP = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

function instantIn(name: string, prefix: string): number | null {
  if (!name.startsWith(prefix) || !name.endsWith(SUFFIX)) return null;
  const stamp = name.slice(prefix.length, -SUFFIX.length);
  const at = Date.parse(stamp.replace(STAMP, '$1-$2-$3T$4:$5:$6Z'));
  return STAMP.test(stamp) && !Number.isNaN(at) ? at : null;
}

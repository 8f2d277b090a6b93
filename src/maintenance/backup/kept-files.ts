/** The scheduled backups in their folder. Only files that match their name pattern are counted or removed. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';

/** Files of other names in a folder of backups are left alone. */
export const SUFFIX = '.backup';

/** Names of files that are not complete end so. */
export const PARTIAL = '.partial';

export type KeptFiles = ReturnType<typeof createKeptFiles>;

/** Several networks may share a folder, so names begin with the network's name and a digest of its root key. */
export function createKeptFiles(folder: string, genesis: GenesisBlock) {
  const digest = sha256Hex(genesis.root_public_key).slice(0, 8);
  const shown = genesis.network_name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
  const prefix = `${shown}-${digest}-`;
  const nameAt = (at: number) => `${prefix}${stampOf(at)}${SUFFIX}`;

  /** The files with their times, newest first. */
  async function ownFiles(): Promise<{ name: string; at: number }[]> {
    const entries = await readdir(folder, { withFileTypes: true });
    const own = entries.flatMap((entry) => {
      const at = entry.isFile() ? instantIn(entry.name, prefix) : null;
      return at === null ? [] : [{ name: entry.name, at }];
    });
    return own.sort((a, b) => b.at - a.at);
  }

  return {
    /** The path for a backup made at this time, in milliseconds since the epoch. */
    pathAt: (at: number): string => join(folder, nameAt(at)),
    /** When the newest backup was made, or null. A file gets its final name only after it is verified. */
    async newest(): Promise<number | null> {
      return (await ownFiles())[0]?.at ?? null;
    },
    /** Removes the oldest backups until only `keep` are left, but never the one just made. */
    async prune(keep: number, made: number): Promise<void> {
      const others = (await ownFiles()).filter(({ name }) => name !== nameAt(made));
      // A clock that was ahead made those that are later, and they must not push out newer ones.
      const isLater = ({ at }: { readonly at: number }) => Number(at > made);
      const inOrder = others.toSorted((a, b) => isLater(a) - isLater(b));
      for (const { name } of inOrder.slice(keep - 1)) await rm(join(folder, name));
    },
    /** Removes incomplete files that killed processes left behind. */
    async removePartial(): Promise<void> {
      for (const entry of await readdir(folder, { withFileTypes: true })) {
        const { name } = entry;
        if (!name.startsWith('.') || !name.endsWith(PARTIAL) || !entry.isFile()) continue;
        if (instantIn(name.slice(1, -PARTIAL.length), prefix) === null) continue;
        await rm(join(folder, name), { force: true });
      }
    },
  };
}

/** UTC in whole seconds, such as `20260301T100000Z`. */
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

/** A disk of a few megabytes that a test can fill, mounted by an unprivileged user in a separate namespace. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  closeSync,
  cpSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeNetworkFolder } from './folders.ts';
import { PROJECT_PATH } from './project.ts';

export interface SmallDisk {
  /** A folder on it, as any process of this user sees it. */
  readonly path: string;
  /** The same folder, as seen by a process that is started through this command. */
  readonly inside: { readonly command: readonly string[]; readonly path: string };
  /** Leaves no room at all. */
  fill(): void;
  /** Leaves about this many bytes. */
  leave(bytes: number): void;
  /** Makes room again. */
  clear(): void;
  /** Makes the disk read-only or writable. */
  lock(isReadOnly: boolean): void;
  [Symbol.asyncDispose](): Promise<void>;
}

const MOUNT = 'mount -t tmpfs -o size="$2" none "$1" && echo mounted && exec cat';

/**
 * Null if users may not mount anything, even for themselves. With `hasUsers`, processes of other users need the disk
 * too, which only root can arrange.
 */
export async function smallDisk(size: string, hasUsers = false): Promise<SmallDisk | null> {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-disk-'));
  const own = hasUsers ? [] : ['--user'];
  const namespace = hasUsers ? ['--mount'] : [...own, '--map-root-user', '--mount'];
  // This process keeps the namespace, and thus the disk, until its input ends.
  const holder = spawn('unshare', [...namespace, 'sh', '-c', MOUNT, 'sh', folder, size], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = new Promise<null>((resolve) => {
    holder.once('error', () => resolve(null));
    holder.once('close', () => resolve(null));
  });
  const mounted = await Promise.race([once(holder.stdout, 'data'), ended]);
  if (mounted === null) {
    rmSync(folder, { recursive: true });
    return null;
  }
  const path = `/proc/${holder.pid}/root${folder}`;
  const ballast = join(path, 'ballast');
  const target = ['--target', String(holder.pid), ...own, '--mount'];
  const enter = ['nsenter', ...target, '--preserve-credentials', `--wd=${PROJECT_PATH}`];
  return {
    path,
    inside: { command: enter, path: folder },
    fill() {
      const file = openSync(ballast, 'a');
      try {
        for (const bytes of [64 * 1024, 1024]) writeUntilFull(file, Buffer.alloc(bytes, 1));
      } finally {
        closeSync(file);
      }
    },
    leave(bytes) {
      const { bavail, bsize } = statfsSync(path);
      appendFileSync(ballast, Buffer.alloc(bavail * bsize - bytes, 1));
    },
    clear: () => rmSync(ballast),
    lock(isReadOnly) {
      const [program, ...args] = [...enter, 'mount', '-o', `remount,${isReadOnly ? 'ro' : 'rw'}`];
      execFileSync(program ?? '', [...args, folder]);
    },
    async [Symbol.asyncDispose]() {
      holder.stdin.end();
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

/** Creates the data folder of a new network on the disk. */
export function networkOn(disk: SmallDisk): string {
  const dataDir = join(disk.path, 'data');
  const { folder } = makeNetworkFolder();
  cpSync(folder, dataDir, { recursive: true });
  rmSync(folder, { recursive: true });
  return dataDir;
}

function writeUntilFull(file: number, bytes: Buffer): void {
  try {
    for (;;) writeSync(file, bytes);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOSPC') throw cause;
  }
}

/** Archives that depend on nothing but what is in them: sorted, of one owner and one time. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** The time of the commit in seconds, or the one that the environment names. */
export function sourceDate(root: string): number {
  const given =
    process.env.SOURCE_DATE_EPOCH ??
    execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' });
  const seconds = Number(given.trim());
  if (!Number.isSafeInteger(seconds) || seconds < 0) {
    throw new Error(`SOURCE_DATE_EPOCH is not a number of seconds: ${given}`);
  }
  return seconds;
}

/** Files that only their owner may read or run would be of no use to others, whatever the umask of this machine is. */
export function makeReadable(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    // A library has the bit, too, but nobody runs it.
    const isRun = (lstatSync(path).mode & 0o100) !== 0 && !path.endsWith('.node');
    chmodSync(path, entry.isDirectory() || isRun ? 0o755 : 0o644);
  }
}

/** The bytes of a tar of these entries of a folder. */
export function tarOf(
  folder: string,
  entries: readonly string[],
  seconds: number,
  owner = 0,
): Buffer {
  const owned = [`--owner=${owner}`, `--group=${owner}`, '--numeric-owner'];
  const fixed = ['--sort=name', '--format=gnu', ...owned];
  const args = [...fixed, `--mtime=@${seconds}`, '-C', folder, '-c', ...entries];
  return execFileSync('tar', args, { maxBuffer: 2 ** 30 });
}

/** Node.js names no time and no file in what it compresses. */
export function gzipped(bytes: Buffer, level = 6): Buffer {
  return gzipSync(bytes, { level });
}

export function sha256(bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Writes `SHA256SUMS` for every other file of the folder, in the form that `sha256sum -c` reads. */
export function writeSums(folder: string): void {
  const names = readdirSync(folder).filter((name) => name !== 'SHA256SUMS');
  const lines = names
    .sort()
    .map((name) => `${sha256(readFileSync(join(folder, name)))}  ${name}\n`);
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}

/** What the machine offers: the versions of Node.js and glibc, free space, open files, and who holds a folder. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { freeSpace } from '../lifecycle/free-space.ts';
import { LOCK_FILE } from '../store/lmdb/folder-lock.ts';
import { type Finding, fine, unknown, warning, wrong } from './finding.ts';

/** What tests put in place of this machine. */
export interface Machine {
  /** Milliseconds since the epoch. */
  now(): number;
  /** As Node.js spells it, without `v`. */
  readonly nodeVersion: string;
  /** Null on a system with another library than glibc. */
  readonly glibcVersion: string | null;
  /** Bytes; null where the system does not say. */
  freeBytes(folder: string): Promise<number | null>;
  /** How many files the process may have open; null where the system does not say. */
  openFiles(pid: number | 'self'): number | null;
}

export function thisMachine(now: () => number): Machine {
  return {
    now,
    nodeVersion: process.versions.node,
    glibcVersion: glibcVersion(),
    freeBytes: freeSpace,
    openFiles,
  };
}

function glibcVersion(): string | null {
  const { header } = process.report.getReport() as {
    readonly header: { readonly glibcVersionRuntime?: string };
  };
  return header.glibcVersionRuntime ?? null;
}

const OPEN_FILES = /^Max open files\s+(\d+|unlimited)/m;

function openFiles(pid: number | 'self'): number | null {
  try {
    const limit = OPEN_FILES.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1];
    if (limit === undefined) return null;
    return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return null;
  }
}

/** The versions of Node.js that there are native parts for, each with the oldest glibc for them. */
const GLIBC_FOR: { readonly [major: string]: number } = {
  20: 27,
  22: 38,
  23: 38,
  24: 38,
  25: 38,
};
const OLDEST_MINOR_OF_20 = 15;

export function checkPrograms({ nodeVersion, glibcVersion }: Machine): Finding[] {
  const [major = '', minor = ''] = nodeVersion.split('.');
  const least = GLIBC_FOR[major];
  const isKnown = least !== undefined && (major !== '20' || Number(minor) >= OLDEST_MINOR_OF_20);
  const node = isKnown
    ? fine('node_version', `Node.js ${nodeVersion}`)
    : wrong('node_version', `Node.js ${nodeVersion} is not supported`, USE_NODE);
  return [node, glibc(glibcVersion, least ?? GLIBC_FOR[20] ?? 0)];
}

const USE_NODE = 'Use Node.js 20.15 or later, or 22 to 25';

function glibc(version: string | null, least: number): Finding {
  const cure = `Use a system with glibc 2.${least} or later; with Node.js 20, 2.27 is enough`;
  if (version === null) return wrong('glibc', 'The system has another library than glibc', cure);
  const [major, minor] = version.split('.').map(Number);
  const isEnough = major === 2 && (minor ?? 0) >= least;
  return isEnough
    ? fine('glibc', `glibc ${version}`)
    : wrong('glibc', `glibc ${version} is too old`, cure);
}

const MEGABYTE = 1_048_576;
const LOW_MEGABYTES = 1024;

/** `leastBytes` is what newcomers need. */
export async function checkSpace(
  machine: Machine,
  folder: string,
  leastBytes: number,
): Promise<Finding> {
  const free = await machine.freeBytes(folder);
  const cure = 'Make room on the disk of the data folder, or move the state to a larger one';
  if (free === null) return unknown('free_space', 'The system does not say', cure);
  const found = `${Math.floor(free / MEGABYTE)} MB are free`;
  if (free < leastBytes) return wrong('free_space', found, cure);
  return free < LOW_MEGABYTES * MEGABYTE
    ? warning('free_space', found, cure)
    : fine('free_space', found);
}

const FEW_OPEN_FILES = 4096;

/** The limit of the process that serves the folder, else of one that is started here. */
export function checkOpenFiles(machine: Machine, holder: Holder | null): Finding {
  const cure = 'Raise the limit, such as by LimitNOFILE= of systemd or ulimit -n';
  const limit = machine.openFiles(holder?.pid ?? 'self');
  if (limit === null) return unknown('open_files', 'The system does not say', cure);
  const whose = holder?.pid == null ? 'A process started here' : 'The process that serves it';
  const found = `${whose} may have ${limit} files open`;
  return limit < FEW_OPEN_FILES ? warning('open_files', found, cure) : fine('open_files', found);
}

export interface Holder {
  /** Null when it is in another container or on another machine. */
  readonly pid: number | null;
  /** The process as the lock file names it. */
  readonly shown: string;
}

/** Who holds the folder now; null when nobody does. Nothing is locked for it, so a start is never in the way. */
export function holderOf(folder: string): Holder | null {
  const path = join(folder, LOCK_FILE);
  if (!existsSync(path) || !isLocked(statSync(path).ino)) return null;
  const [pid = '', host = ''] = readFileSync(path, 'utf8').trim().split(' ');
  const isHere = existsSync(`/proc/${pid}/limits`) && /^\d+$/.test(pid);
  return { pid: isHere ? Number(pid) : null, shown: `Process ${pid} on ${host}` };
}

const LOCKS = '/proc/locks';

function isLocked(inode: number): boolean {
  if (!existsSync(LOCKS)) return false;
  return new RegExp(`^\\d+: \\w+ +ADVISORY +WRITE .*:${inode} `, 'm').test(
    readFileSync(LOCKS, 'utf8'),
  );
}

export function checkHolder(holder: Holder | null): Finding {
  if (holder === null && !existsSync(LOCKS)) {
    return unknown('holder', 'The system does not say', 'Look at the processes of this machine');
  }
  return fine(
    'holder',
    holder === null ? 'No process writes the state' : `${holder.shown} writes the state`,
  );
}

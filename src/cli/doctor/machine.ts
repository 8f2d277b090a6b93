/** Checks of the machine: versions of Node.js and glibc, free space, open files, and which process holds a folder. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasGlibc, oldestGlibc, type Platform, thisPlatform } from '../../base/native-parts.ts';
import { freeSpace, openFileLimit } from '../../server/lifecycle/system-limits.ts';
import { LOCK_FILE } from '../../store/lmdb/folder-lock.ts';
import { type Finding, fine, unknown, warning, wrong } from './finding.ts';

/** The machine, which tests replace. */
export interface Machine extends Platform {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Free bytes; null where the system does not report them. */
  freeBytes(folder: string): Promise<number | null>;
  /** The open file limit of the process; null where the system does not report it. */
  openFiles(pid: number | 'self'): number | null;
}

export function thisMachine(now: () => number): Machine {
  return { now, ...thisPlatform(), freeBytes: freeSpace, openFiles: openFileLimit };
}

export function checkPrograms(machine: Machine): Finding[] {
  const { nodeVersion } = machine;
  const least = oldestGlibc(machine);
  const node =
    least !== null
      ? fine('node_version', `Node.js ${nodeVersion}`)
      : wrong('node_version', `Node.js ${nodeVersion} is not supported`, USE_NODE);
  return [node, glibc(machine, least ?? LEAST_MINOR)];
}

const USE_NODE = 'Use Node.js 20.15 or later, or 22 to 25';
/** The requirement of Node.js 20. */
const LEAST_MINOR = 27;

function glibc(machine: Machine, least: number): Finding {
  const { glibcVersion } = machine;
  const cure = `Use a system with glibc 2.${least} or later; with Node.js 20, 2.${LEAST_MINOR} is enough`;
  if (glibcVersion === null) {
    return wrong('glibc', 'The system does not use glibc', cure);
  }
  return hasGlibc(machine, least)
    ? fine('glibc', `glibc ${glibcVersion}`)
    : wrong('glibc', `glibc ${glibcVersion} is too old`, cure);
}

const MEGABYTE = 1_048_576;
const LOW_MEGABYTES = 1024;

/** `leastBytes` is the free space that joins require. */
export async function checkSpace(
  machine: Machine,
  folder: string,
  leastBytes: number,
): Promise<Finding> {
  const free = await machine.freeBytes(folder);
  const cure = 'Free up space on the disk of the data folder, or move the state to a larger disk';
  if (free === null) return unknown('free_space', 'The system does not report free space', cure);
  const found = `${Math.floor(free / MEGABYTE)} MB are free`;
  if (free < leastBytes) return wrong('free_space', found, cure);
  return free < LOW_MEGABYTES * MEGABYTE
    ? warning('free_space', found, cure)
    : fine('free_space', found);
}

const FEW_OPEN_FILES = 4096;

/** The limit of the process that serves the folder, or else of a process started here. */
export function checkOpenFiles(machine: Machine, holder: Holder | null): Finding {
  const cure = 'Raise the limit, for example with LimitNOFILE= in systemd or with ulimit -n';
  const limit = machine.openFiles(holder?.pid ?? 'self');
  if (limit === null) return unknown('open_files', 'The system does not report the limit', cure);
  const whose = holder?.pid == null ? 'A process started here' : 'The process that serves it';
  const found = `${whose} may open ${limit} files`;
  return limit < FEW_OPEN_FILES ? warning('open_files', found, cure) : fine('open_files', found);
}

export interface Holder {
  /** Null when it is in another container or on another machine. */
  readonly pid: number | null;
  /** The process according to the lock file. */
  readonly shown: string;
}

/** The process that holds the folder now, or null. It takes no lock, so it never blocks a start. */
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
    return unknown(
      'holder',
      'The system does not report it',
      'Check the processes on this machine',
    );
  }
  return fine(
    'holder',
    holder === null ? 'No process writes the state' : `${holder.shown} writes the state`,
  );
}

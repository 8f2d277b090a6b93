/** Runs Node.js in a separate process, which does not outlive the one that started it. */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import './isolation.ts';

/**
 * The kernel kills the process as soon as its parent is gone, even one that was killed while it was
 * busy and could not clean up.
 */
const BOUND = ['setpriv', '--pdeathsig', 'KILL'] as const;

let prefix: readonly string[] | undefined;

/** `setpriv` is part of every Debian; without it, only an orderly end of the parent ends the child. */
function bound(): readonly string[] {
  prefix ??= spawnSync(BOUND[0], [...BOUND.slice(1), 'true']).status === 0 ? BOUND : [];
  return prefix;
}

/** `before` is a command that turns into Node.js, such as a tracer. */
export function spawnNode(
  args: readonly string[],
  options: SpawnOptions,
  before: readonly string[] = [],
): ChildProcess {
  const all = [...bound(), ...before, process.execPath, ...args];
  const [command = process.execPath, ...rest] = all;
  const child = spawn(command, rest, options);
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  return child;
}

/** The process ids of a process's children; available only on Linux. */
export function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter(Boolean)
      .map(Number),
  );
}

/** A process that has ended is a zombie until its parent has read its exit status. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

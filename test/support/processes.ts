/** Node.js in a process of its own, which does not outlive the one that started it. */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';

/**
 * The kernel kills the process as soon as its parent is gone, even one that was killed while it was
 * busy and could not clean up.
 */
const BOUND = ['setpriv', '--pdeathsig', 'KILL'] as const;

let prefix: readonly string[] | undefined;

/** `setpriv` is part of every Debian; without it only an orderly end of the parent ends the child. */
function bound(): readonly string[] {
  prefix ??= spawnSync(BOUND[0], [...BOUND.slice(1), 'true']).status === 0 ? BOUND : [];
  return prefix;
}

export function spawnNode(args: readonly string[], options: SpawnOptions): ChildProcess {
  const [command = process.execPath, ...rest] = [...bound(), process.execPath, ...args];
  const child = spawn(command, rest, options);
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  return child;
}

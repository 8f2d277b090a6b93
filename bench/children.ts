/** Child processes of a run: how they are started, watched and stopped. */
import type { ChildProcess, ForkOptions } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
const STOP_MS = 15_000;

const stopping = new WeakSet<ChildProcess>();
const killed = new WeakSet<ChildProcess>();

/** Children communicate over IPC, and end when that channel closes. */
export function childOptions(): ForkOptions {
  return { cwd: ROOT, execArgv: ['--import', 'tsx'] };
}

export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Reports a child that ends unexpectedly: otherwise only a refused connection would show it. */
export function watchChild(child: ChildProcess, what: string, lastWords = () => ''): void {
  child.once('exit', (code, signal) => {
    if (killed.has(child) || (stopping.has(child) && code === 0)) return;
    if (stopping.has(child) && signal === 'SIGTERM') return;
    process.stderr.write(
      `bench: ${what} ended by ${signal ?? `exit code ${code}`}\n${lastWords()}`,
    );
  });
}

export async function stopChild(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  stopping.add(child);
  const ended = once(child, 'exit');
  const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(impatience);
}

/** Ends the child as if its machine had failed. */
export async function killChild(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  killed.add(child);
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

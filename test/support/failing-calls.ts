/** System calls on one file of the data directory that fail, as on a broken disk: strace injects the errors. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { ChildServer } from './child-server.ts';

export interface FailingCall {
  /** In the data directory, or any by its whole path. */
  readonly file: string;
  readonly call: string;
  readonly error: string;
  /** Which of these calls of a thread fails, counted from 1; all others succeed unless it is `1+`. */
  readonly nth: number | '1+';
}

/** False where users may not trace their own processes. */
export function mayTrace(): boolean {
  return spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0;
}

function injection(dataDir: string, { file, call, error, nth }: FailingCall): readonly string[] {
  const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${error}:when=${nth}`];
  return ['-f', '-o', '/dev/null', '-P', resolve(dataDir, file), ...inject];
}

/** What to put before Node.js; the tracer is a process beside it. */
export function failingFromStart(dataDir: string, failing: FailingCall): readonly string[] {
  return ['strace', '-D', ...injection(dataDir, failing)];
}

/** Once this resolves, the call fails in a server that is running. The tracer ends with the server. */
export function failFromNow({ na, process }: ChildServer, failing: FailingCall): Promise<void> {
  return failIn(Number(process.pid), na.dataDir, failing);
}

/** The same for any process. */
export async function failIn(pid: number, folder: string, failing: FailingCall): Promise<void> {
  const options = ['-p', String(pid), ...injection(folder, failing)];
  const tracer = spawn('strace', options, { stdio: ['ignore', 'ignore', 'pipe'] });
  const [said] = await once(tracer.stderr.setEncoding('utf8'), 'data');
  if (!String(said).includes('attached')) throw new Error(String(said));
}

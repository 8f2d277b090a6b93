/** Makes system calls on one file of the data directory fail, as on a broken disk: strace injects the errors. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { ChildServer } from './child-server.ts';

export interface FailingCall {
  /** Relative to the data directory, or an absolute path. */
  readonly file: string;
  readonly call: string;
  readonly error: string;
  /** Which of these calls of a thread fails, counted from 1; `1+` makes all of them fail. */
  readonly nth: number | '1+';
}

/** False if users may not trace their own processes. */
export function mayTrace(): boolean {
  return spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0;
}

function injection(dataDir: string, { file, call, error, nth }: FailingCall): readonly string[] {
  const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${error}:when=${nth}`];
  return ['-f', '-o', '/dev/null', '-P', resolve(dataDir, file), ...inject];
}

/** The command to put before Node.js; the tracer runs as a separate process. */
export function failingFromStart(dataDir: string, failing: FailingCall): readonly string[] {
  return ['strace', '-D', ...injection(dataDir, failing)];
}

/** Makes the call fail in a running server once this resolves. The tracer ends with the server. */
export function failFromNow({ na, process }: ChildServer, failing: FailingCall): Promise<void> {
  return failIn(Number(process.pid), na.dataDir, failing);
}

/** Like `failFromNow`, for any process. */
export async function failIn(pid: number, folder: string, failing: FailingCall): Promise<void> {
  const options = ['-p', String(pid), ...injection(folder, failing)];
  const tracer = spawn('strace', options, { stdio: ['ignore', 'ignore', 'pipe'] });
  const [said] = await once(tracer.stderr.setEncoding('utf8'), 'data');
  if (!String(said).includes('attached')) throw new Error(String(said));
}

/** A disk that fails while a server runs: strace makes system calls on one file fail, and what the server may do then. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { startTestAuthority } from './authority.ts';
import type { ChildServer, Ended } from './child-server.ts';
import { REAL_TIME } from './clock.ts';
import { newKey, nodeRequest, operate, outcome } from './requests.ts';

/**
 * Requests invites this many times, or until the server stops answering. Returns the last token of each answer, which
 * represents all of its tokens.
 */
export async function invite({ na }: ChildServer, requests = Infinity): Promise<string[]> {
  const tokens: string[] = [];
  while (tokens.length < requests) {
    const answer = await operate(na, '/admin/invite', { count: 50 }).catch(() => null);
    if (answer === null) break;
    assert.equal(outcome(answer), '200', 'what cannot be stored is not answered');
    tokens.push(answer.body.tokens.at(-1).token_id);
  }
  return tokens;
}

export async function assertEnded({ ended }: ChildServer, cause: RegExp): Promise<void> {
  const { code, signal, stderr } = await ended;
  assert.deepEqual({ code, signal }, { code: 1, signal: null });
  assertNamed(stderr, cause);
}

export function assertNamed(stderr: Ended['stderr'], cause: RegExp): void {
  const critical = stderr.split('\n').filter((line) => line.includes(' CRITICAL '));
  assert.equal(critical.length, 1, stderr);
  assert.match(critical[0] ?? '', /mesh\.process Ending after a failure: /);
  assert.match(critical[0] ?? '', cause);
}

/** Checks that the authority starts again on the folder, and that every token can be used. */
export async function assertStored(dataDir: string, tokens: readonly string[]): Promise<void> {
  // A small disk has less free space than the default requires.
  const environment = { MESH_MIN_FREE_MB: '0' };
  await using na = await startTestAuthority({ dataDir, environment, clock: REAL_TIME });
  for (const invite_token of tokens) {
    assert.equal(outcome(await nodeRequest(na, '/join', newKey(), { invite_token })), '200');
  }
}

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

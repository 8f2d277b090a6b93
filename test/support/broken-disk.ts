/** Checks for a server whose disk fails while it is running. */
import assert from 'node:assert/strict';
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

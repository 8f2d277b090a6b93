/** What holds of a server whose disk breaks under it. */
import assert from 'node:assert/strict';
import { startTestAuthority } from './authority.ts';
import { type ChildServer, type Ended, REAL_TIME } from './child-server.ts';
import { newKey, nodeRequest, operate, outcome } from './requests.ts';

/** So many requests for invites, or as many as are answered with 200. The last token of each stands for all of it. */
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

/** The folder starts again, and every token can be used. */
export async function assertStored(dataDir: string, tokens: readonly string[]): Promise<void> {
  // A small disk has no more space than that.
  const environment = { MESH_MIN_FREE_MB: '0' };
  await using na = await startTestAuthority({ dataDir, environment, clock: REAL_TIME });
  for (const invite_token of tokens) {
    assert.equal(outcome(await nodeRequest(na, '/join', newKey(), { invite_token })), '200');
  }
}

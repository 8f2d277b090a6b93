import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { get, heartbeat, invite, joinedNode, newKey, nodeRequest } from './support/requests.ts';

test('50 concurrent joins with one invite give exactly one certificate', async () => {
  await using na = await startTestAuthority();
  const token = await invite(na);
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => nodeRequest(na, '/join', newKey(), { invite_token: token })),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  const refused = answers.filter(({ status }) => status !== 200);
  assert.deepEqual(
    new Set(refused.map(({ body }) => body.error.code)),
    new Set(['invalid_invite_token']),
  );
});

test('a node that joined and sends heartbeats is counted as active', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  assert.equal((await heartbeat(na, node)).body.ack, true);
  assert.deepEqual((await get(na, '/nodes')).body, { count: 1 });
});

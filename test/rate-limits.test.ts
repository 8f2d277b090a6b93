import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import {
  createRateLimiter,
  createRateLimits,
  oldestFirst,
  type RateLimitSettings,
} from '../src/edge/limits/rate-limit.ts';
import { RATE_BUCKETS } from '../src/protocol/route-description.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { SECOND } from './support/clock.ts';
import {
  auditEvents,
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
  type Received,
  send,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';

const LIMITED = '429 rate_limit_exceeded';

/** Gives one bucket its default limit; the others stay off. */
function withDefault(bucket: string) {
  return { environment: { [`MESH_RATE_LIMIT_${bucket}`]: '' } };
}

test('30 POST /admin/* in 60 s pass, whatever their route; the 31st is 429', async () => {
  await using na = await startTestAuthority(withDefault('ADMIN'));
  for (let round = 0; round < 10; round += 1) {
    assert.equal(outcome(await operate(na, '/admin/invite')), '200');
    assert.equal(outcome(await operate(na, '/admin/revoke')), '400 missing_cert_id');
    const unknown = await operate(na, '/admin/operator-keys/nobody/revoke');
    assert.equal(outcome(unknown), '404 unknown_operator_key');
  }
  for (const path of ['/admin/invite', '/admin/revoke', '/admin/operator-keys/nobody/revoke']) {
    const answer = await operate(na, path);
    assert.equal(outcome(answer), LIMITED);
    assert.equal(answer.headers.get('retry-after'), '60');
    assert.deepEqual(answer.body.error.details, {});
    assert.equal(answer.body.error.request_id, answer.headers.get('x-request-id'));
  }
});

test('an admin request counts whatever is wrong with it, before anything else', async () => {
  await using na = await startTestAuthority({
    environment: { MESH_RATE_LIMIT_ADMIN: '2/60', MESH_MAX_REQUEST_BYTES: '2048' },
  });
  const invite = (body?: string) => send(na, 'POST', '/admin/invite', { ...(body && { body }) });
  for (const [expected, ask] of [
    ['401 admin_auth_failed', () => invite()],
    ['400 invalid_json', () => invite('{')],
    ['413 request_entity_too_large', () => invite(' '.repeat(3000))],
    [
      '403 insufficient_operator_tier',
      () => operate(na, '/admin/revoke', {}, { operator: na.standard }),
    ],
  ] as const) {
    assert.equal(outcome(await ask()), expected);
    assert.equal(outcome(await ask()), expected);
    const audited = auditEvents(na).length;
    assert.equal(outcome(await ask()), LIMITED);
    assert.equal(outcome(await operate(na, '/admin/invite')), LIMITED);
    assert.equal(auditEvents(na).length, audited, 'a limited request does nothing');
    na.clock.advance(60 * SECOND);
  }
});

test('anything but POST /admin/* does not count against the admin limit', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_ADMIN: '1/60' } });
  for (const [method, path] of [
    ['GET', '/admin/invite'],
    ['DELETE', '/admin/invite'],
    ['POST', '/join'],
    ['GET', '/nodes'],
  ] as const) {
    await send(na, method, path);
  }
  await operate(na, '/nodes', {}, { method: 'GET' });
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
  assert.equal(outcome(await operate(na, '/admin/invite')), LIMITED);
  assert.equal(outcome(await operate(na, '/nodes', {}, { method: 'GET' })), '200');
  assert.equal(outcome(await get(na, '/healthz')), '200');
});

test('the window slides: each request frees its own place, and Retry-After says when', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_ADMIN: '3/60' } });
  const ask = () => operate(na, '/admin/invite');
  for (const pause of [0, 10, 20]) {
    na.clock.advance(pause * SECOND);
    assert.equal(outcome(await ask()), '200');
  }
  // The counted requests were sent at 0, 10 and 30 s.
  na.clock.advance(10 * SECOND);
  assert.equal((await ask()).headers.get('retry-after'), '20');
  na.clock.advance(19_500);
  assert.equal((await ask()).headers.get('retry-after'), '1', 'seconds are rounded up');
  na.clock.advance(500);
  assert.equal(outcome(await ask()), '200');
  assert.equal((await ask()).headers.get('retry-after'), '10');
  na.clock.advance(10 * SECOND);
  assert.equal(outcome(await ask()), '200');
  assert.equal((await ask()).headers.get('retry-after'), '20');
});

test('refused requests are not counted: repeating them does not prolong the wait', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_ADMIN: '2/60' } });
  const ask = () => send(na, 'POST', '/admin/invite');
  await ask();
  await ask();
  for (let second = 0; second < 59; second += 1) {
    na.clock.advance(SECOND);
    assert.equal(outcome(await ask()), LIMITED);
  }
  na.clock.advance(SECOND);
  assert.equal(outcome(await ask()), '401 admin_auth_failed');
});

test('a limited request spends no nonce: the same request passes later', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_ADMIN: '1/10' } });
  await send(na, 'POST', '/admin/invite');
  const request = operatorRequest(na, '/admin/invite');
  assert.equal(outcome(await sendSigned(na, request)), LIMITED);
  na.clock.advance(10 * SECOND);
  assert.equal(outcome(await sendSigned(na, request)), '200');
});

test('each source address has its own limit', async () => {
  const environment = { MESH_RATE_LIMIT_ADMIN: '1/60', MESH_PROXY_HOPS: '1' };
  await using na = await startTestAuthority({ environment });
  const from = (address: string) =>
    send(na, 'POST', '/admin/invite', { headers: { 'X-Forwarded-For': address } });
  for (const address of ['192.0.2.1', '192.0.2.2', '2001:db8::1']) {
    assert.equal(outcome(await from(address)), '401 admin_auth_failed');
    assert.equal(outcome(await from(address)), LIMITED);
  }
  assert.equal(outcome(await from('2001:0DB8:0:0::1')), LIMITED, 'one address in two spellings');
  assert.equal(outcome(await from('2001:db8::ffff:1')), LIMITED, 'another address of the /64');
  assert.equal(outcome(await from('2001:db8:0:1::1')), '401 admin_auth_failed', 'another /64');
  assert.equal(outcome(await from('::ffff:192.0.2.1')), LIMITED, 'IPv4 mapped into IPv6');
});

test('MESH_RATE_LIMIT_JOIN limits joins whatever is wrong with them, and spends no token', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_JOIN: '3/60' } });
  for (let joins = 0; joins < 3; joins += 1) {
    assert.equal(outcome(await send(na, 'POST', '/join')), '400 missing_node_public_key');
  }
  const token = await invite(na);
  const refused = await nodeRequest(na, '/join', newKey(), { invite_token: token });
  assert.equal(outcome(refused), LIMITED);
  na.clock.advance(60 * SECOND);
  const later = await nodeRequest(na, '/join', newKey(), { invite_token: token });
  assert.equal(outcome(later), '200');
});

test('after 10 failed invite lookups further failures are 429, but a valid invite still works', async () => {
  await using na = await startTestAuthority(withDefault('JOIN_FAILURES'));
  const guess = (token = 'guess') => nodeRequest(na, '/join', newKey(), { invite_token: token });
  const used = await invite(na);
  await guess(used);
  for (let tries = 0; tries < 10; tries += 1) {
    const token = tries % 2 === 0 ? used : 'guess';
    assert.equal(outcome(await guess(token)), '403 invalid_invite_token');
  }
  const limited = await guess();
  assert.equal(outcome(limited), LIMITED);
  assert.equal(limited.headers.get('retry-after'), '60');
  assert.equal(outcome(await guess(used)), LIMITED);
  for (let nodes = 0; nodes < 3; nodes += 1) {
    assert.equal(outcome(await guess(await invite(na))), '200');
  }
  na.clock.advance(59 * SECOND);
  assert.equal(outcome(await guess()), LIMITED);
  na.clock.advance(SECOND);
  assert.equal(outcome(await guess()), '403 invalid_invite_token');
});

test('of 30 concurrent failed lookups no more than the limit are answered as such', async () => {
  await using na = await startTestAuthority(withDefault('JOIN_FAILURES'));
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => nodeRequest(na, '/join', newKey(), { invite_token: 'x' })),
  );
  assert.equal(answers.filter(({ status }) => status === 403).length, 10);
  assert.equal(answers.filter(({ status }) => status === 429).length, 20);
});

test('other refusals of a join are not failed lookups', async () => {
  await using na = await startTestAuthority({
    environment: { MESH_RATE_LIMIT_JOIN_FAILURES: '1/60' },
  });
  const token = await invite(na);
  for (let tries = 0; tries < 3; tries += 1) {
    const call = { signedBy: newKey() };
    const unproven = await nodeRequest(na, '/join', newKey(), { invite_token: token }, call);
    assert.equal(outcome(unproven), '401 node_auth_failed');
    assert.equal(outcome(await send(na, 'POST', '/join')), '400 missing_node_public_key');
  }
  const failed = await nodeRequest(na, '/join', newKey(), { invite_token: 'x' });
  assert.equal(outcome(failed), '403 invalid_invite_token');
});

test('after 60 failed proofs of one key from one address further ones are 429, and genuine ones pass', async () => {
  await using na = await startTestAuthority(withDefault('NODE_FAILURES'));
  const node = await joinedNode(na);
  const neighbor = await joinedNode(na);
  for (let tries = 0; tries < 30; tries += 1) {
    assert.equal(outcome(await forged(na, node, '/heartbeat')), '401 node_auth_failed');
    assert.equal(outcome(await forged(na, node, '/renew')), '401 node_auth_failed');
  }
  const audited = auditEvents(na).length;
  const limited = await forged(na, node, '/heartbeat');
  assert.equal(outcome(limited), LIMITED);
  assert.equal(limited.headers.get('retry-after'), '60');
  assert.equal(outcome(await forged(na, node, '/renew')), LIMITED);
  assert.equal(auditEvents(na).length, audited);
  assert.equal(outcome(await heartbeat(na, node)), '200', 'who holds the key is not shut out');
  const replayed = signedHeartbeat(na, node, node.key);
  assert.equal(outcome(await sendSigned(na, replayed)), '200');
  assert.equal(outcome(await sendSigned(na, replayed)), LIMITED, 'a replay is a failure');
  assert.equal(outcome(await heartbeat(na, neighbor)), '200', 'the fleet is not locked out');
  assert.equal(outcome(await forged(na, neighbor, '/heartbeat')), '401 node_auth_failed');
  na.clock.advance(60 * SECOND);
  assert.equal(outcome(await forged(na, node, '/heartbeat')), '401 node_auth_failed');
});

test('failed proofs from one address do not limit those from another', async () => {
  const environment = { MESH_RATE_LIMIT_NODE_FAILURES: '2/60', MESH_PROXY_HOPS: '1' };
  await using na = await startTestAuthority({ environment });
  const node = await joinedNode(na);
  const from = (address: string, signer = node.key) => {
    const { init } = signedHeartbeat(na, node, signer);
    const headers = { 'X-Forwarded-For': address };
    return send(na, 'POST', '/heartbeat', { ...init, headers });
  };
  for (let tries = 0; tries < 2; tries += 1) await from('192.0.2.66', newKey());
  assert.equal(outcome(await from('192.0.2.66', newKey())), LIMITED);
  assert.equal(outcome(await from('192.0.2.66')), '200');
  assert.equal(outcome(await from('192.0.2.1', newKey())), '401 node_auth_failed');
});

test('of 30 concurrent forged heartbeats no more than the limit are verified', async () => {
  await using na = await startTestAuthority({
    environment: { MESH_RATE_LIMIT_NODE_FAILURES: '5/60' },
  });
  const node = await joinedNode(na);
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => forged(na, node, '/heartbeat')),
  );
  assert.equal(answers.filter(({ status }) => status === 401).length, 5);
  assert.equal(answers.filter(({ status }) => status === 429).length, 25);
});

test('accepted requests and refusals for the state of a certificate are not failed proofs', async () => {
  await using na = await startTestAuthority({
    environment: { MESH_RATE_LIMIT_NODE_FAILURES: '1/60' },
  });
  const node = await joinedNode(na);
  for (let tries = 0; tries < 5; tries += 1) {
    assert.equal(outcome(await heartbeat(na, node)), '200');
    const unknown = await nodeRequest(na, '/heartbeat', node.key, { cert_id: 'unknown' });
    assert.equal(outcome(unknown), '403 certificate_not_found');
  }
  assert.equal(outcome(await forged(na, node, '/heartbeat')), '401 node_auth_failed');
  assert.equal(outcome(await forged(na, node, '/heartbeat')), LIMITED);
});

for (const [bucket, route] of [
  ['HEARTBEAT', '/heartbeat'],
  ['RENEW', '/renew'],
] as const) {
  test(`MESH_RATE_LIMIT_${bucket} limits ${route} per address`, async () => {
    await using na = await startTestAuthority({
      environment: { [`MESH_RATE_LIMIT_${bucket}`]: '2/30' },
    });
    const nodes = [await joinedNode(na), await joinedNode(na), await joinedNode(na)];
    const outcomes = [];
    for (const { key, certId } of nodes) {
      outcomes.push(outcome(await nodeRequest(na, route, key, { cert_id: certId })));
    }
    assert.deepEqual(outcomes, ['200', '200', LIMITED]);
    na.clock.advance(30 * SECOND);
    const [node] = nodes;
    assert.ok(node !== undefined);
    const later = await nodeRequest(na, route, node.key, { cert_id: node.certId });
    assert.equal(outcome(later), '200');
  });
}

test('MESH_RATE_LIMIT_ADMIN=off takes the limit away', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_ADMIN: 'off' } });
  const path = '/admin/invite';
  const answers = await Promise.all(Array.from({ length: 50 }, () => send(na, 'POST', path)));
  for (const { status } of answers) assert.notEqual(status, 429);
});

test('a limiter discards the key idle longest beyond 50,000 keys, and keeps the rest', () => {
  const limiter = createRateLimiter({ count: 1, windowSeconds: 3600 });
  const total = 60_000;
  for (let index = 0; index < total; index += 1) limiter.count(`key ${index}`, index);
  let remembered = 0;
  for (let index = 0; index < total; index += 1) {
    if (limiter.retryAfter(`key ${index}`, total) > 0) remembered += 1;
  }
  assert.equal(remembered, 50_000);
  assert.equal(limiter.retryAfter('key 0', total), 0);
  assert.notEqual(limiter.retryAfter(`key ${total - 1}`, total), 0);
});

test('a limiter keeps no more memory however often a few keys are counted', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const limiter = createRateLimiter({ count: 3, windowSeconds: 60 });
  const countMany = (from: number) => {
    for (let now = from; now < from + 300_000_000; now += 1000) {
      limiter.count(`192.0.2.1 key ${now % 7000}`, now);
    }
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = countMany(0);
  const bytes = countMany(300_000_000) - before;
  assert.ok(bytes < 2_000_000, `${bytes} bytes`);
});

test('a limiter discards keys whose requests are all past, however few arrive at a time', () => {
  const limiter = createRateLimiter({ count: 1, windowSeconds: 60 });
  const everySecond = 1000;
  for (let index = 0; index < 40_000; index += 1) {
    limiter.count(`key ${index}`, index * everySecond);
    limiter.count('busy', index * everySecond);
    assert.notEqual(limiter.retryAfter('busy', index * everySecond), 0);
    assert.ok(limiter.keys() <= 150, `${limiter.keys()} keys after ${index + 1} s`);
  }
});

test('a key that is still active is not the one discarded', () => {
  const limiter = createRateLimiter({ count: 2, windowSeconds: 3600 });
  limiter.count('busy', 0);
  for (let index = 0; index < 49_999; index += 1) limiter.count(`key ${index}`, 1);
  limiter.count('busy', 2);
  for (let index = 0; index < 49_998; index += 1) limiter.count(`other ${index}`, 3);
  assert.notEqual(limiter.retryAfter('busy', 4), 0);
});

test('a limit that is off counts and limits nothing', () => {
  const none = RATE_BUCKETS.map((bucket) => [bucket, null]);
  const limits = createRateLimits(Object.fromEntries(none) as RateLimitSettings);
  for (let index = 0; index < 1000; index += 1) assert.equal(limits.take('JOIN', 'key', index), 0);
  assert.equal(limits.isOn('JOIN'), false);
});

test('a limiter survives a clock that is set back', () => {
  const limiter = createRateLimiter({ count: 2, windowSeconds: 60 });
  limiter.count('key', 100_000);
  limiter.count('key', 100_000);
  assert.ok(limiter.retryAfter('key', 50_000) > 0);
  assert.equal(limiter.retryAfter('key', 160_000), 0);
});

/** A request in the name of the node, signed by another key. */
function forged(na: TestAuthority, node: TestNode, route: string): Promise<Received> {
  const call = { signedBy: newKey() };
  return nodeRequest(na, route, node.key, { cert_id: node.certId }, call);
}

function signedHeartbeat(na: TestAuthority, node: TestNode, signedBy: TestNode['key']) {
  return signedByNode(na, '/heartbeat', node.key, { cert_id: node.certId }, { signedBy });
}

test('X-Forwarded-For without trusted proxies causes one warning per thread', async () => {
  await using na = await startTestAuthority({
    flags: { threads: '1' },
    environment: { MESH_RATE_LIMIT_ADMIN: '100/60' },
  });
  const warnings = () => na.logLines.filter((line) => line.includes('MESH_PROXY_HOPS is 0'));
  await send(na, 'POST', '/admin/invite');
  assert.equal(warnings().length, 0);
  for (let round = 0; round < 3; round += 1) {
    await send(na, 'POST', '/admin/invite', { headers: { 'X-Forwarded-For': '192.0.2.1' } });
  }
  assert.equal(warnings().length, 1);
});

for (const [hops, url, expected] of [
  ['0', 'https://na.example', 1],
  ['1', 'https://na.example', 0],
  ['0', 'http://na.example', 0],
] as const) {
  test(`MESH_PROXY_HOPS=${hops} with the public URL ${url} starts with ${expected} warnings`, async () => {
    const environment = { MESH_PROXY_HOPS: hops, MESH_PUBLIC_URL: url };
    await using na = await startTestAuthority({ environment });
    const warnings = na.logLines.filter((line) => line.includes('MESH_PROXY_HOPS is 0'));
    assert.equal(warnings.length, expected);
  });
}

const step = fc.record({
  what: fc.constantFrom('set', 'set', 'delete', 'take'),
  key: fc.nat({ max: 12 }),
});

test('Keys are taken in the order in which they were last set, through any sets and deletes', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const map = new Map<number, null>();
      const oldest = oldestFirst(map);
      let model: number[] = [];
      for (const { what, key } of steps) {
        if (what === 'take') {
          assert.equal(oldest.take(), model.shift());
        } else {
          map.delete(key);
          model = model.filter((other) => other !== key);
          if (what === 'delete') continue;
          map.set(key, null);
          model.push(key);
        }
        assert.deepEqual([...map.keys()], model);
      }
    }),
    { numRuns: 500 },
  );
});

test('A map whose oldest key makes room for each new one keeps the newest', () => {
  const map = new Map<number, null>();
  const oldest = oldestFirst(map);
  for (let key = 0; key < 20_000; key += 1) {
    map.set(key, null);
    if (map.size > 1000) oldest.take();
  }
  assert.deepEqual([...map.keys()].slice(0, 3), [19_000, 19_001, 19_002]);
  assert.equal(map.size, 1000);
});

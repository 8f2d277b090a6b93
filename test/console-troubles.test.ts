/**
 * What `mesh-na console` shows and keeps when the authority is slow, limits requests, stops, or is replaced by another
 * one.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite, test } from 'node:test';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { changeIn, startTestConsole } from './support/console.ts';
import { exchange } from './support/exchange.ts';
import { auditEvents, joinedNode } from './support/requests.ts';

const authority = sharedAuthority();

type Trouble =
  | 'none'
  | 'slow'
  | 'silent'
  | 'lost'
  | 'replaced'
  | 'limited'
  | 'stopping'
  | 'foreign';

/** A proxy in front of the authority that causes the selected trouble. */
async function startProxy(na: TestAuthority) {
  const held = { trouble: 'none' as Trouble, behind: na, go: (): void => undefined };
  // On a busy machine, clients would use connections that were closed meanwhile because they were idle.
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    const body = (await request.setEncoding('utf8').toArray()).join('');
    const { trouble } = held;
    if (trouble === 'silent') return;
    if (trouble === 'limited') {
      response.writeHead(429, { 'retry-after': '30' });
      return response.end(
        '{"error":{"code":"rate_limit_exceeded","message":"Rate limit exceeded","details":{}}}',
      );
    }
    if (trouble === 'stopping') {
      response.writeHead(503);
      return response.end(
        '{"error":{"code":"shutting_down","message":"The authority is shutting down","details":{}}}',
      );
    }
    if (trouble === 'foreign') return response.end('<html>');
    const { method = 'GET', url = '/' } = request;
    if (trouble === 'slow' && method === 'POST') {
      await new Promise<void>((resolve) => {
        held.go = resolve;
        server.emit('held');
      });
    }
    const headers = Object.fromEntries(
      Object.entries(request.headers)
        .filter(([name]) => !['host', 'connection', 'content-length'].includes(name))
        .map(([name, value]): [string, string] => [name, String(value)]),
    );
    const answer = await exchange(held.behind.url + url, {
      method,
      headers,
      ...(body !== '' && { body }),
    });
    if (trouble === 'lost' && method === 'POST') return response.destroy();
    if (trouble === 'replaced' && method === 'POST') return response.end('<html>');
    response.writeHead(answer.status, {
      'content-type': answer.headers.get('content-type') ?? 'application/json',
    });
    return response.end(answer.bytes);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    held,
    /** Resolves when a change waits for `go`. */
    waits: () => once(server, 'held'),
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

// At the same time, because a silent authority makes the others wait.
suite('one line on the page, and neither a form nor a change is lost', {
  concurrency: true,
}, () => {
  for (const [trouble, sentence] of [
    ['silent', /role="alert">No answer from the authority at [^<]*it timed out/],
    [
      'limited',
      /role="alert">The authority refused: Rate limit exceeded [^<]*try again in 30 seconds</,
    ],
    ['stopping', /role="alert">The authority failed: The authority is shutting down/],
    ['foreign', /role="alert">The answer did not come from a network authority/],
  ] as const) {
    test(`from a ${trouble} authority`, async () => {
      const na = await authority();
      const node = await joinedNode(na);
      await using proxy = await startProxy(na);
      await using console = await startTestConsole(na, { url: proxy.url, timeoutMs: 2000 });
      assert.equal((await console.page('nodes')).status, 200);
      proxy.held.trouble = trouble;
      const paths = ['nodes', 'nodes.csv', 'contacts', 'audit', 'succession'];
      for (const page of await Promise.all(paths.map((path) => console.page(path)))) {
        assert.equal(page.status, 502);
        assert.match(page.text, sentence);
      }
      const form = { node_public_key: node.key.publicKey, name: 'kept', labels: 'env=kept' };
      const refused = await console.submit('do?action=describe-node', form);
      assert.match(refused.text, sentence);
      assert.match(refused.text, /value="kept"/);
      assert.match(refused.text, />env=kept<\/textarea>/);
      proxy.held.trouble = 'none';
      const id = changeIn(await console.submit('do?action=describe-node', form));
      proxy.held.trouble = trouble;
      const failed = await console.submit('confirm', { id });
      assert.match(failed.text, sentence);
      assert.match(failed.text, /<title>Not done.*Try again/s);
      proxy.held.trouble = 'none';
      assert.match((await console.submit('confirm', { id })).text, /<title>Done.*node_described/s);
    });
  }
});

for (const [trouble, sentence] of [
  ['lost', /No answer from the authority/],
  ['replaced', /The answer did not come from a network authority/],
] as const) {
  test(`a change whose answer is ${trouble} is sent again, and happens once`, async () => {
    const na = await authority();
    const node = await joinedNode(na);
    await using proxy = await startProxy(na);
    await using console = await startTestConsole(na, { url: proxy.url });
    const fields = { node_public_key: node.key.publicKey, reason: 'superseded' };
    const id = changeIn(await console.submit('do?action=revoke-node', fields));
    proxy.held.trouble = trouble;
    const number = node.key.publicKey.slice(0, 8);
    const lost = await console.submit('confirm', { id, number });
    assert.match(lost.text, sentence);
    assert.match(lost.text, /<title>Not done.*Try again/s);
    proxy.held.trouble = 'none';
    const done = await console.submit('confirm', { id });
    assert.match(done.text, /Done.*"crl_sequence".*certificate_revoked/s);
    const events = auditEvents(na).filter(
      ({ type, details }) => type === 'certificate_revoked' && details.cert_id === node.certId,
    );
    assert.equal(events.length, 1);
  });
}

test('a change whose answer was lost long ago is not sent again', async () => {
  const na = await authority();
  let now = na.clock.now();
  await using proxy = await startProxy(na);
  await using console = await startTestConsole(na, { url: proxy.url, now: () => now });
  const id = changeIn(
    await console.submit('do?action=create-invites', { count: '1', batch: 'once' }),
  );
  proxy.held.trouble = 'lost';
  await console.submit('confirm', { id });
  proxy.held.trouble = 'none';
  now += 301_000;
  const late = await console.submit('confirm', { id });
  assert.match(late.text, /Not done/);
  assert.doesNotMatch(late.text, /Try again/);
  const made = auditEvents(na).filter(({ details }) => details.batch === 'once');
  assert.equal(made.length, 1);
});

test('the tokens of invites that take long are shown, whatever the browser loads meanwhile', async () => {
  const na = await authority();
  await using proxy = await startProxy(na);
  await using console = await startTestConsole(na, { url: proxy.url });
  const id = changeIn(await console.submit('do?action=create-invites', { count: '2' }));
  proxy.held.trouble = 'slow';
  const waits = proxy.waits();
  const confirmed = console.submit('confirm', { id });
  await waits;
  const outcome = `outcome?id=${id}`;
  const running = await console.page(outcome);
  assert.match(running.text, /<title>In progress/);
  assert.equal(running.headers.refresh, '2');
  const { cookie, root } = await console.open();
  await console.ask('HEAD', root + outcome, { cookie });
  await console.submit('theme', { back: `./${outcome}`, theme: 'dark' });
  proxy.held.go();
  await confirmed;
  for (const look of ['first', 'again']) {
    const { text } = await console.page(outcome);
    assert.equal(text.match(/\b[0-9a-f]{48}\b/g)?.length, 2, look);
  }
});

test('another network at the address is reported as such', async () => {
  const na = await authority();
  await using other = await startTestAuthority();
  await using console = await startTestConsole(na, { url: other.url });
  const { status, text } = await console.page('nodes');
  assert.equal(status, 502);
  assert.match(text, /role="alert">Another authority answers at/);
  assert.ok(text.includes(other.audience) && text.includes(na.audience));

  await using moved = await startProxy(na);
  await using before = await startTestConsole(na, { url: moved.url });
  const fields = { count: '1', batch: 'elsewhere' };
  const id = changeIn(await before.submit('do?action=create-invites', fields));
  moved.held.behind = other;
  const refused = await before.submit('confirm', { id });
  assert.match(refused.text, /<title>Not done/);
  assert.match(refused.text, /role="alert">Another authority answers at/);
  for (const { logLines } of [na, other]) assert.doesNotMatch(logLines.join(), /elsewhere/);
});

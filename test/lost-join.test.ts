/** A node whose join was carried out, but whose answer was lost, gets its certificate from the same command. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { scratchFolder } from './support/folders.ts';
import { invite, operate } from './support/requests.ts';

/** Forwards requests, and drops the connection instead of the answer to a join while `isLossy`. */
async function lossyRelay(na: TestAuthority) {
  const relay = { url: '', isLossy: true, [Symbol.asyncDispose]: async () => {} };
  const server = createServer((received, response) => {
    const { method, headers, url = '' } = received;
    const sent = request(new URL(url, na.url), { method, headers }, (answer) => {
      if (url === '/join' && relay.isLossy) {
        answer.resume();
        answer.on('end', () => response.destroy());
        return;
      }
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    received.pipe(sent);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  relay.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  relay[Symbol.asyncDispose] = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return relay;
}

for (const proof of ['body', 'header']) {
  test(`a join with its proof in the ${proof} that was carried out without an answer is not lost`, async () => {
    await using na = await startTestAuthority({ clock: REAL_TIME });
    await using folder = scratchFolder();
    await using relay = await lossyRelay(na);
    const token = await invite(na);
    const nodeDir = join(folder.path, 'node');
    const args = [
      ...['node', 'join', '--url', relay.url, '--node-dir', nodeDir, '--token', token],
      ...['--genesis', join(na.dataDir, 'genesis.json'), '--proof', proof],
    ];
    const lost = await runCommand(args);
    assert.equal(lost.code, EXIT.unreachable, lost.stderr);
    assert.match(lost.stderr, /may have issued the certificate: run the same command again/);
    assert.equal(existsSync(join(nodeDir, 'certificate.json')), false);
    const kept = join(nodeDir, 'request.json');
    assert.equal(statSync(kept).mode & 0o777, 0o600);
    assert.equal(readFileSync(kept, 'utf8').includes(token), false, 'the token is a secret');
    relay.isLossy = false;
    const again = await runCommand(args);
    assert.equal(again.code, EXIT.done, again.stderr);
    const certificate = JSON.parse(readFileSync(join(nodeDir, 'certificate.json'), 'utf8'));
    const list = await operate(na, '/admin/certificates', {}, { method: 'GET' });
    assert.deepEqual(
      list.body.certificates.map(({ cert_id }: { cert_id: string }) => cert_id),
      [certificate.cert_id],
      'no other certificate was issued',
    );
  });
}

/** Webhooks whose endpoints use TLS, and which certificates the service trusts [events-5]. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { loadConfig } from '../src/server/config/load.ts';
import { startTestAuthority } from './support/authority.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { REAL_TIME, testClock } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { get, invite } from './support/requests.ts';
import { issueTlsPair, type MadePair, makeIssuer } from './support/tls-files.ts';
import { until } from './support/until.ts';
import { startReceiver } from './support/webhook-receiver.ts';

const scratch = mkdtempSync(join(tmpdir(), 'mesh-webhook-tls-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

const issuer = makeIssuer(scratch, 'house');
const stranger = makeIssuer(scratch, 'stranger');
const HERE = { subject: 'IP:127.0.0.1' };

test('an endpoint that a given issuer vouches for is posted to, and no other is sent anything', async () => {
  await using folder = networkFolder('alpha');
  const receive = ({ certFile, keyFile }: MadePair) =>
    startReceiver({
      authorityKey: loadConfig({ dataDir: folder.path }, {}, REAL_TIME.now()).publicKey,
      now: REAL_TIME.now,
      tls: { cert: readFileSync(certFile), key: readFileSync(keyFile) },
    });
  await using good = await receive(issueTlsPair(scratch, 'good', issuer, HERE));
  await using unknown = await receive(issueTlsPair(scratch, 'unknown', stranger, HERE));
  await using expired = await receive(
    issueTlsPair(scratch, 'expired', issuer, { ...HERE, isExpired: true }),
  );
  await using other = await receive(
    issueTlsPair(scratch, 'other', issuer, { subject: 'DNS:hooks.example' }),
  );
  const refused = [
    [unknown, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    [expired, 'CERT_HAS_EXPIRED'],
    [other, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ] as const;
  const urls = [good, unknown, expired, other].map(({ url }) => url);
  await using server = await startChildServer(folder.path, {
    environment: {
      ...NO_LIMITS,
      NODE_EXTRA_CA_CERTS: issuer.certFile,
      MESH_WEBHOOKS: urls.join(' '),
      MESH_WEBHOOK_PRIVATE: '1',
    },
  });
  for (let made = 0; made < 3; made += 1) await invite(server.na);
  await good.until(3);
  assert.deepEqual(good.refused, []);
  const log = await logOf(
    server,
    refused.map(([{ host }]) => host),
  );
  for (const [{ host }, code] of refused) {
    const expected = `cannot be posted to ${host}: the connection failed (${code})`;
    assert.ok(log.includes(expected), `${expected}: ${log}`);
  }
  assert.deepEqual([unknown.requests, expired.requests, other.requests], [0, 0, 0]);
  assert.doesNotMatch(log, /not-for-logs/);
});

test('without such an issuer, those of Node.js are used, and nothing is sent', async () => {
  await using folder = networkFolder('alpha');
  const { certFile, keyFile } = issueTlsPair(scratch, 'private', issuer, HERE);
  const clock = testClock();
  await using hook = await startReceiver({
    authorityKey: loadConfig({ dataDir: folder.path }, {}, clock.now()).publicKey,
    now: clock.now,
    tls: { cert: readFileSync(certFile), key: readFileSync(keyFile) },
  });
  const environment = { MESH_WEBHOOKS: hook.url, MESH_WEBHOOK_PRIVATE: '1' };
  await using na = await startTestAuthority({ dataDir: folder.path, clock, environment });
  await invite(na);
  const failure = /the connection failed \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)/;
  await until(async () => failure.test(na.logLines.join('')));
  assert.equal(hook.requests, 0);
});

/** The service's log after it has failed at each of the hosts. */
async function logOf(server: ChildServer, hosts: readonly string[]): Promise<string> {
  const failures = hosts.map(
    (host) => new RegExp(`^mesh_na_webhook_failures_total\\{host="${host}"\\} [1-9]`, 'm'),
  );
  await until(async () => {
    const { text } = await get(server.na, '/metrics');
    return failures.every((failure) => failure.test(text));
  });
  const { stdout, stderr } = await server.end('SIGTERM');
  return stdout + stderr;
}

/** The authority's own TLS, and how a new certificate comes into use. */
import type { HttpResponse } from 'uWebSockets.js';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { readTlsPair } from '../src/base/tls/pair.ts';
import { openApps } from '../src/edge/http/listener.ts';
import { createPeers } from '../src/edge/request/request-head.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { startChildServer } from './support/child-server.ts';
import { runCommand, startCommand } from './support/commands.ts';
import { ownFolder, ownNetwork } from './support/folders.ts';
import { ownPort } from './support/own-port.ts';
import { rawConnection } from './support/raw-http.ts';
import { type MadePair, makeTlsPair, putInPlace } from './support/tls-files.ts';
import { until } from './support/until.ts';

const DAY = 86_400_000;
const folder = ownFolder();
const [first, second, other] = ['first', 'second', 'other'].map((name) =>
  makeTlsPair(folder, name),
) as [MadePair, MadePair, MadePair];
const served = { certFile: join(folder, 'served.crt'), keyFile: join(folder, 'served.pem') };

interface Opened {
  readonly socket: TLSSocket;
  /** The subject of the certificate. */
  readonly name: string;
}

async function open(url: string, options: ConnectionOptions = {}): Promise<Opened> {
  const socket = connect({
    host: '127.0.0.1',
    port: Number(new URL(url).port),
    rejectUnauthorized: false,
    ...options,
  });
  await once(socket, 'secureConnect');
  return { socket, name: String(socket.getPeerCertificate().subject.CN) };
}

async function answerOn({ socket }: Opened, path = '/healthz'): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: na.example.org\r\n\r\n`);
  const [answer] = await once(socket, 'data');
  return String(answer);
}

async function nameOn(url: string): Promise<string> {
  const { socket, name } = await open(url);
  socket.destroy();
  return name;
}

function warningsOf({ logLines }: TestAuthority): string[] {
  return logLines.filter((line) => line.includes('mesh.tls'));
}

for (const threads of ['1', '2']) {
  suite(`TLS on ${threads} threads`, () => {
    let na: TestAuthority;
    before(async () => {
      putInPlace(first, served);
      const flags = { tlsCert: served.certFile, tlsKey: served.keyFile, threads };
      na = await startTestAuthority({ flags });
    });
    after(() => na[Symbol.asyncDispose]());

    test('answers over TLS, and publishes an https address', async () => {
      const opened = await open(na.url);
      assert.match(
        await answerOn(opened, '/sovereign.json'),
        /"endpoint": ?"https:\/\/na\.example/,
      );
      opened.socket.destroy();
    });

    test('speaks nothing older than TLS 1.2', async () => {
      const old: ConnectionOptions = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1' };
      await assert.rejects(open(na.url, { ...old, ciphers: 'DEFAULT@SECLEVEL=0' }));
      const { socket } = await open(na.url, { maxVersion: 'TLSv1.2' });
      assert.equal(socket.getProtocol(), 'TLSv1.2');
      socket.destroy();
    });

    test('new connections get a new pair, and open ones continue', async () => {
      const early = await open(na.url);
      for (const pair of [second, first, second, first, second]) {
        putInPlace(pair, served);
        await na.reloadTls();
        const names = await Promise.all(Array.from({ length: 6 }, () => nameOn(na.url)));
        assert.deepEqual(new Set(names), new Set([pair.name]));
        assert.match(await answerOn(early), /^HTTP\/1\.1 200 /);
      }
      assert.equal(early.name, 'first');
      early.socket.destroy();
    });

    test('a bad pair is logged once with its reason, and the previous one stays', async () => {
      const before = warningsOf(na).length;
      writeFileSync(served.keyFile, readFileSync(other.keyFile));
      await na.reloadTls();
      await na.reloadTls();
      assert.equal(await nameOn(na.url), 'second');
      const [line, ...more] = warningsOf(na).slice(before);
      assert.match(line ?? '', /ERROR.*does not belong to the certificate.*stays in use/);
      assert.deepEqual(more, []);
      putInPlace(first, served);
      await na.reloadTls();
      assert.equal(await nameOn(na.url), 'first');
    });

    test('metrics say when the certificate expires', async () => {
      const opened = await open(na.url);
      const metric = /^mesh_na_expiry_timestamp_seconds\{kind="tls"\} (\d+)\n/m;
      let text = await answerOn(opened, '/metrics');
      while (!metric.test(text)) text += String((await once(opened.socket, 'data'))[0]);
      opened.socket.destroy();
      const seconds = Number(metric.exec(text)?.[1]);
      assert.equal(seconds * 1000, readTlsPair(first, Date.now()).notAfter);
      assert.match(text, new RegExp(`^mesh_na_tls_not_after_seconds ${seconds}$`, 'm'));
    });
  });
}

test('the last connection of an earlier pair may end in the moment in which a new one is used', async () => {
  const uws: typeof import('uWebSockets.js') = createRequire(import.meta.url)('uWebSockets.js');
  const closed: string[] = [];
  const held: HttpResponse[] = [];
  const apps = openApps({
    uws: {
      ...uws,
      App() {
        const app = uws.App();
        const close = app.close.bind(app);
        app.close = () => {
          closed.push('app');
          return close();
        };
        return app;
      },
      us_listen_socket_close(socket) {
        closed.push('socket');
        uws.us_listen_socket_close(socket);
      },
    },
    host: '127.0.0.1',
    port: await ownPort(),
    tls: null,
    maxConnections: 10,
    peers: createPeers(),
    serve: (app) => void app.get('/*', (res) => void held.push(res.onAborted(() => undefined))),
    onPaused: () => undefined,
  });
  const client = rawConnection(`http://127.0.0.1:${apps.port}`);
  (await client).write('GET / HTTP/1.1\r\nHost: na\r\n\r\n');
  await until(() => held.length > 0);
  const moved = apps.useTls(second);
  held[0]?.close();
  await moved;
  assert.deepEqual(closed, ['socket', 'app']);
  apps.close();
});

suite('a pair is refused in one sentence', () => {
  const now = Date.now();
  const broken = join(folder, 'broken');
  const readable = { ...first, keyFile: join(folder, 'readable.pem') };
  before(() => {
    writeFileSync(broken, 'nothing', { mode: 0o600 });
    writeFileSync(readable.keyFile, readFileSync(first.keyFile));
    chmodSync(readable.keyFile, 0o644);
  });

  test('for each of its faults', () => {
    for (const [files, at, message] of [
      [{ ...first, certFile: '/absent' }, now, /cannot be read \(ENOENT\)$/],
      [{ ...first, certFile: broken }, now, /no certificate in PEM form$/],
      [{ ...first, keyFile: broken }, now, /no private key in PEM form/],
      [{ ...first, keyFile: other.keyFile }, now, /does not belong to/],
      [readable, now, /run chmod 600/],
      [first, now + 31 * DAY, /expired on \d{4}-\d\d-\d\d$/],
      [first, now - DAY, /valid only from \d{4}-\d\d-\d\d on$/],
    ] as const) {
      assert.throws(() => readTlsPair(files, at), message);
    }
  });
});

test('SIGHUP loads a new pair, and a bad one is reported', async () => {
  putInPlace(first, served);
  const args = ['--tls-cert', served.certFile, '--tls-key', served.keyFile];
  await using server = await startChildServer(ownNetwork(), { args });
  const early = await open(server.na.url);
  assert.equal(early.name, 'first');
  const { stderr } = server.process;
  assert.ok(stderr !== null);
  const log: string[] = [];
  stderr.on('data', (text: string) => log.push(text));
  const logged = async (line: RegExp) => {
    server.process.kill('SIGHUP');
    while (!line.test(log.join(''))) await once(stderr, 'data');
  };
  putInPlace(second, served);
  await logged(/ INFO mesh\.tls New connections use the new certificate/);
  assert.equal(await nameOn(server.na.url), 'second');
  writeFileSync(served.keyFile, readFileSync(other.keyFile));
  await logged(/ ERROR mesh\.tls .*does not belong to the certificate.*stays in use/);
  assert.equal(await nameOn(server.na.url), 'second');
  assert.match(await answerOn(early), /^HTTP\/1\.1 200 /);
  early.socket.destroy();
});

test('a command trusts only the authority that --ca names', async () => {
  const flags = { tlsCert: second.certFile, tlsKey: second.keyFile };
  await using na = await startTestAuthority({ flags });
  const ask = (...more: string[]) =>
    runCommand(['policy', 'show', '--url', na.url, '--json', ...more]);
  assert.match(na.url, /^https:/);
  const [strange, known] = await Promise.all([ask(), ask('--ca', second.certFile)]);
  assert.match(strange.stderr, /DEPTH_ZERO_SELF_SIGNED_CERT/);
  assert.doesNotMatch(known.stderr, /CERT/);
});

test('a node that runs trusts only the authority that --ca names, and says so', async () => {
  const flags = { tlsCert: second.certFile, tlsKey: second.keyFile };
  await using na = await startTestAuthority({ flags });
  const { root_public_key: rootKey } = JSON.parse(
    readFileSync(join(na.dataDir, 'genesis.json'), 'utf8'),
  );
  const tokenFile = join(folder, 'used-token');
  writeFileSync(tokenFile, 'used');
  const run = ['node', 'run', '--node-dir', join(folder, 'node'), '--url', na.url];
  const joining = [...run, '--root-key', rootKey, '--token-file', tokenFile];
  const strange = startCommand(joining);
  await until(() => strange.shown().includes('trying again'));
  assert.match(
    (await strange.stop()).stderr,
    /\(DEPTH_ZERO_SELF_SIGNED_CERT\) .*; trying again in \d+ s\. Trust the issuer of its certificate with --ca/,
  );
  const { code, stderr } = await runCommand([...joining, '--ca', second.certFile]);
  assert.deepEqual([code, /The invite token is not valid/.test(stderr)], [4, true], stderr);
});

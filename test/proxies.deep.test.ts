/**
 * The sample configurations in docs/deploy, run exactly as they are, in front of an authority. The proxies come
 * from the distribution; `npm test` installs them where it may.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../src/edge/http/free-port.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { findProgram } from './support/programs.ts';
import { PROJECT } from './support/project.ts';
import { rawConnection } from './support/raw-http.ts';
import { get, invite, newKey, operate, signedByNode } from './support/requests.ts';

const HOST = '127.0.0.1';
/** Another address of this machine, from which the client connects; the proxy itself connects from `HOST`. */
const CLIENT = '127.0.0.2';
/** A busy machine may take half a minute to start a proxy. */
const [MOST_TRIES, RETRY_MS] = [600, 50];
const FORGED = {
  'X-Forwarded-For': '203.0.113.7',
  'X-Forwarded-Host': 'forged.example.org',
  'X-Forwarded-Proto': 'https',
};

interface Proxy {
  /** Its file in docs/deploy. */
  readonly sample: string;
  /** Null if it is not installed. */
  readonly program: string | null;
  /** The configuration, from the sample with its ports replaced. */
  configuration(sample: string, folder: string): string;
  arguments(file: string): readonly string[];
}

const PROXIES: { readonly [language: string]: Proxy } = {
  nginx: {
    sample: 'nginx.conf',
    program: findProgram(['nginx'], process.env),
    configuration: (sample, folder) => `
      daemon off;
      pid ${folder}/nginx.pid;
      error_log stderr;
      ${process.getuid?.() === 0 ? 'user root;' : ''}
      events {}
      http {
        access_log off;
        ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
          .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
          .join('\n')}
        ${sample}
      }`,
    arguments: (file) => ['-e', 'stderr', '-c', file],
  },
  haproxy: {
    sample: 'haproxy-one.cfg',
    program: findProgram(['haproxy'], process.env),
    configuration: (sample) => sample,
    arguments: (file) => ['-q', '-db', '-f', file],
  },
};

const folder = mkdtempSync(join(tmpdir(), 'mesh-proxies-'));
let na: TestAuthority;
before(async () => {
  na = await startTestAuthority({ environment: { MESH_PROXY_HOPS: '1' } });
});
after(async () => {
  await na.stop();
  for (const path of [na.dataDir, folder]) rmSync(path, { recursive: true, force: true });
});

test('HTTP/1.0, which nginx speaks by default, is answered with 505', async () => {
  using connection = await rawConnection(na.url);
  connection.write('GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n');
  assert.match(await connection.closed(), /^HTTP\/1\.1 505 /);
});

for (const [language, proxy] of Object.entries(PROXIES)) {
  const skip = proxy.program === null ? `${language} is not installed` : false;
  suite(`the sample for ${language}`, { skip }, () => {
    let port: number;
    let child: ChildProcess;
    before(async () => {
      port = await freePort(HOST, 0);
      child = startProxy(language, proxy, port);
      await untilReady(child, port);
    });
    after(async () => {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    });

    test('passes signed requests, and the client’s address counts', async () => {
      const key = newKey();
      const terms = { invite_token: await invite(na) };
      const { path, init } = signedByNode(na, '/join', key, terms);
      const joined = await ask(port, 'POST', path, { body: init.body, headers: FORGED });
      assert.equal(joined.status, 200, joined.text);
      const { cert_id } = JSON.parse(joined.text);
      const roster = await operate(
        { ...na, url: `http://${HOST}:${port}` },
        '/nodes',
        {},
        { method: 'GET' },
      );
      assert.equal(roster.body.nodes[cert_id].remote_addr, CLIENT);
    });

    test('publishes the requested host, whatever a client forwards', async () => {
      const headers = { ...FORGED, Host: 'na.example.org' };
      const { text } = await ask(port, 'GET', '/sovereign.json', { headers });
      assert.equal(JSON.parse(text).endpoint, 'http://na.example.org');
    });

    test('passes live pages', async () => {
      const socket = connect(port, HOST);
      const upgrade = [
        'GET /live?topic=dashboard HTTP/1.1',
        'Host: na.example.org',
        'Upgrade: websocket',
        'Connection: Upgrade',
        `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
        'Sec-WebSocket-Version: 13',
      ];
      socket.write(`${upgrade.join('\r\n')}\r\n\r\n`);
      const [answer] = await once(socket, 'data');
      socket.destroy();
      assert.match(String(answer), /^HTTP\/1\.1 101 /);
    });

    test('does not show metrics to strangers, however they spell the path', async () => {
      for (const path of ['/metrics', '/%6Detrics', '/metric%73', '/%2Fmetrics']) {
        assert.equal((await ask(port, 'GET', path)).status, 404);
      }
      assert.equal((await get(na, '/metrics')).status, 200);
    });
  });
}

suite('the sample for nginx that keeps operators apart', {
  skip: PROXIES.nginx?.program === null ? 'nginx is not installed' : false,
}, () => {
  let [port, operators] = [0, 0];
  let child: ChildProcess;
  before(async () => {
    port = await freePort(HOST, 0);
    operators = await freePort(HOST, 0);
    const sample = sampleOf('nginx-operators.conf').replace(
      '10.0.0.5:8080',
      `${HOST}:${operators}`,
    );
    child = startSample('apart', PROXIES.nginx as Proxy, sample, port);
    await untilReady(child, port);
  });
  after(async () => {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  });

  test('serves operator routes only on the private address', async () => {
    const at = (of: number) => ({ ...na, url: `http://${HOST}:${of}` });
    const roster = (of: number) => operate(at(of), '/nodes', {}, { method: 'GET' });
    assert.equal((await operate(at(port), '/admin/invite')).status, 404);
    assert.equal((await operate(at(operators), '/admin/invite')).status, 200);
    assert.deepEqual(Object.keys((await roster(port)).body), ['count']);
    assert.deepEqual(Object.keys((await roster(operators)).body), ['count', 'nodes']);
  });

  test('serves everyone else as before', async () => {
    const { path, init } = signedByNode(na, '/join', newKey(), { invite_token: await invite(na) });
    assert.equal((await ask(port, 'POST', path, { body: init.body })).status, 200);
    assert.equal((await ask(port, 'GET', '/metrics')).status, 404);
  });
});

function startProxy(language: string, proxy: Proxy, port: number): ChildProcess {
  return startSample(language, proxy, sampleOf(proxy.sample), port);
}

function startSample(name: string, proxy: Proxy, sample: string, port: number): ChildProcess {
  const placed = sample
    .replace(/(listen|bind) :?8080/, `$1 ${HOST}:${port}`)
    .replace('127.0.0.1:8443', new URL(na.url).host);
  const file = join(folder, `${name}.conf`);
  writeFileSync(file, proxy.configuration(placed, folder));
  const child = spawn(String(proxy.program), proxy.arguments(file), {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  // Whatever happens, the proxy ends with the tests.
  process.once('exit', () => child.kill('SIGKILL'));
  return child;
}

async function untilReady(child: ChildProcess, port: number): Promise<void> {
  for (let tries = 0; !(await isReady(port)); tries += 1) {
    assert.equal(child.exitCode, null, 'the proxy has ended');
    assert.ok(tries < MOST_TRIES, 'the proxy does not pass requests on');
    await setTimeout(RETRY_MS);
  }
}

function sampleOf(name: string): string {
  return readFileSync(new URL(`docs/deploy/${name}`, PROJECT), 'utf8');
}

/** Whether the proxy is listening and can reach the authority. */
async function isReady(port: number): Promise<boolean> {
  try {
    return (await ask(port, 'GET', '/healthz')).status === 200;
  } catch {
    return false;
  }
}

interface Asked {
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request from the client's address. */
async function ask(port: number, method: string, path: string, { body, headers = {} }: Asked = {}) {
  const outgoing = request({ host: HOST, port, localAddress: CLIENT, method, path, headers });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  const pieces = await incoming.setEncoding('utf8').toArray();
  return { status: incoming.statusCode, text: pieces.join('') };
}

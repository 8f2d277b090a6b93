/**
 * `npx tsx test/tls-swaps.ts`: changes the TLS pair of a running server repeatedly while new connections are opened, and
 * counts the handshakes that fail, with and without changes. ApacheBench opens them, because its handshakes cost a
 * fifth of those of Node.js; a few by Node.js show which certificate is served.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { parseArgs } from 'node:util';
import { cpuSecondsOf } from '../bench/cpu.ts';
import { startChildServer } from './support/child-server.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { findProgram } from './support/programs.ts';
import { makeTlsPair, putInPlace } from './support/tls-files.ts';

const { values } = parseArgs({
  options: {
    swaps: { type: 'string', default: '50' },
    threads: { type: 'string', default: '2' },
    clients: { type: 'string', default: '2' },
    connections: { type: 'string', default: '64' },
  },
});
const swaps = Number(values.swaps);
const BETWEEN_SWAPS_MS = 200;
const BETWEEN_LOOKS_MS = 50;
/** More than it can send in the time. */
const MOST_REQUESTS = 1_000_000;

const program = findProgram(['ab'], process.env);
if (program === null) throw new Error('ab is missing: apt-get install apache2-utils');
const folder = mkdtempSync(join(tmpdir(), 'mesh-tls-swaps-'));
const { folder: dataDir } = makeNetworkFolder();
const pairs = ['even', 'odd'].map((name) => makeTlsPair(folder, name));
const served = { certFile: join(folder, 'served.crt'), keyFile: join(folder, 'served.pem') };
putInPlace(pairAt(0), served);
const args = ['--tls-cert', served.certFile, '--tls-key', served.keyFile];
const server = await startChildServer(dataDir, { args: [...args, '--threads', values.threads] });
try {
  report('without changes', await run(program, 0));
  const changed = await run(program, swaps);
  report(`with ${swaps} changes`, changed);
  process.exitCode = changed.names.size === 2 ? 0 : 1;
} finally {
  await server.end('SIGTERM');
  for (const path of [folder, dataDir]) rmSync(path, { recursive: true, force: true });
}

interface Counted {
  readonly opened: number;
  readonly failed: number;
  readonly seconds: number;
  /** CPU time per handshake, in microseconds. */
  readonly serverCpu: number;
  readonly clientCpu: number;
  /** The names of the certificates that were served. */
  readonly names: ReadonlySet<string>;
}

/** Opens new connections all the time, as many as the clients and the server can handle at once. */
async function run(client: string, changes: number): Promise<Counted> {
  const started = performance.now();
  const serverCpu = cpuSecondsOf(server.process.pid ?? 0);
  const seconds = ((swaps + 1) * BETWEEN_SWAPS_MS) / 1000;
  const load = Promise.all(
    Array.from({ length: Number(values.clients) }, () => runClient(client, seconds)),
  );
  const looking = lookAtCertificates(load);
  for (let swap = 1; swap <= swaps; swap += 1) {
    await delay(BETWEEN_SWAPS_MS);
    if (swap > changes) continue;
    putInPlace(pairAt(swap), served);
    server.process.kill('SIGHUP');
  }
  const made = await load;
  const { names, failed } = await looking;
  const opened = sum(made.map((each) => each.opened));
  const perHandshake = 1e6 / Math.max(opened, 1);
  return {
    opened,
    failed: failed + sum(made.map((each) => each.failed)),
    seconds: (performance.now() - started) / 1000,
    serverCpu: (cpuSecondsOf(server.process.pid ?? 0) - serverCpu) * perHandshake,
    clientCpu: sum(made.map(({ cpu }) => cpu)) * perHandshake,
    names,
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

interface Made {
  readonly opened: number;
  readonly failed: number;
  /** CPU seconds of the client. */
  readonly cpu: number;
}

/** Each request has its own connection, which is closed after the answer. */
async function runClient(client: string, seconds: number): Promise<Made> {
  const child = spawn(
    client,
    [
      ...['-q', '-r', '-l', '-c', values.connections, '-t', String(Math.ceil(seconds))],
      ...['-n', String(MOST_REQUESTS), `${server.na.url}/healthz`],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => said.push(text));
  }
  let cpu = 0;
  const looking = setInterval(() => {
    if (child.exitCode === null) cpu = cpuSecondsOf(child.pid ?? 0);
  }, 100);
  const [code] = await once(child, 'close');
  clearInterval(looking);
  const text = said.join('');
  if (code !== 0) throw new Error(`ab ended with ${code}: ${text.slice(-500)}`);
  const numberOf = (name: string) => Number(new RegExp(`^${name}: +(\\d+)$`, 'm').exec(text)?.[1]);
  // It reports a failure during a handshake at once, and does not always count it in the end.
  const broken = text.match(/SSL handshake failed/g)?.length ?? 0;
  const failed = Math.max(numberOf('Failed requests'), broken);
  return { opened: numberOf('Complete requests') - failed, failed, cpu };
}

/** Reads the subject of the served certificate repeatedly while the load continues. */
async function lookAtCertificates(until: Promise<unknown>) {
  const names = new Set<string>();
  let failed = 0;
  let isOver = false;
  void until.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const name = await nameServed();
    if (name === null) failed += 1;
    else names.add(name);
    await delay(BETWEEN_LOOKS_MS);
  }
  return { names, failed };
}

/** Null if the handshake fails. */
async function nameServed(): Promise<string | null> {
  const port = Number(new URL(server.na.url).port);
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    return String(socket.getPeerCertificate().subject.CN);
  } catch {
    return null;
  } finally {
    socket.destroy();
  }
}

function pairAt(index: number) {
  const pair = pairs[index % pairs.length];
  if (pair === undefined) throw new Error('There are two pairs');
  return pair;
}

function report(what: string, { opened, failed, seconds, serverCpu, clientCpu }: Counted): void {
  const cpu = `CPU of each: server ${serverCpu.toFixed(0)} µs, client ${clientCpu.toFixed(0)} µs`;
  process.stdout.write(
    `${what}: ${opened} handshakes, ${Math.round(opened / seconds)}/s, ${failed} failed; ${cpu}\n`,
  );
}

/** Bursts: as many connections as fit, which all send the same request at once, while a node sends heartbeats. */
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { jsonText } from '../../src/base/json/write.ts';
import type { Route } from '../../src/edge/request/route.ts';
import { bodyExample, pathExamples } from '../../src/pages/reference/example.ts';
import type { TestAuthority } from './authority.ts';
import { PROGRAM } from './project.ts';
import { joinedNode, signedByNode } from './requests.ts';

/**
 * The program, whose threads write down how much they computed each time before they returned to their event loop. How
 * long that took also depends on what else the processors do.
 */
export function programWithProbe(folder: string): readonly string[] {
  const source = `
    import { appendFileSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
    const thread = readlinkSync('/proc/thread-self').split('/').at(-1);
    const schedstat = '/proc/self/task/' + thread + '/schedstat';
    const computed = () => Number(readFileSync(schedstat, 'latin1').split(' ')[0]) / 1e6;
    writeFileSync(${JSON.stringify(`${folder}/thread-`)} + thread, '');
    let last = computed();
    setInterval(() => {
      const now = computed();
      if (now - last >= ${LEAST_SILENCE_MS}) {
        appendFileSync(${JSON.stringify(`${folder}/silence-`)} + thread, (now - last).toFixed(0) + '\\n');
      }
      last = now;
    }, 5).unref();`;
  return ['--import', `data:text/javascript,${encodeURIComponent(source)}`, ...PROGRAM];
}

const LEAST_SILENCE_MS = 50;

/** The longest that any thread computed without a return to its event loop since the last call, in ms. */
export function longestSilence(folder: string): number {
  let longest = 0;
  for (const name of readdirSync(folder)) {
    if (!name.startsWith('silence-')) continue;
    const times = readFileSync(join(folder, name), 'utf8').trim().split('\n').map(Number);
    longest = Math.max(longest, ...times);
    rmSync(join(folder, name));
  }
  return longest;
}

/** The resident memory of a process in MiB. */
export function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
  return Number(kib) / 1024;
}

/** A request to the route that costs as much as a stranger can make it cost without knowing anything. */
export function hostileRequest(route: Route, headers = HOSTILE_HEADERS): string {
  let { path } = route;
  for (const [name, value] of pathExamples(route)) {
    path = path.replace(`{${name}}`, encodeURIComponent(value));
  }
  const query = Object.entries(route.query?.properties ?? {}).map(([name, schema]) => {
    const { type, enum: values } = schema as { type?: string; enum?: readonly string[] };
    return `${name}=${values?.at(-1) ?? (type === 'integer' ? 1 : (SOUGHT[name] ?? 's'))}`;
  });
  const target = query.length === 0 ? path : `${path}?${query.join('&')}`;
  const body = route.method === 'GET' ? '' : jsonText(bodyExample(route, 'bench') ?? {});
  const length = route.method === 'GET' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return `${route.method} ${target} HTTP/1.1\r\nHost: na\r\n${headers}${length}\r\n${body}`;
}

/** A list without these is sent in pages, which take longer than one; a cursor must be one of ours. */
const SOUGHT: { readonly [parameter: string]: string } = { cursor: '', subject_id: 'nobody' };

const HOSTILE_HEADERS = [
  ['Accept', `text/html,${'a/b,'.repeat(100)}`],
  ['Accept-Encoding', 'a,'.repeat(200)],
  ['If-None-Match', '"a",'.repeat(100)],
  ['X-Forwarded-For', '1,'.repeat(200)],
  ['X-Admin-Key-Id', 'ops-privileged'],
  ['Cookie', 'a=b;'.repeat(100)],
]
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');

export interface Burst {
  /** How often each status came; 0 for a connection that ended without one. */
  readonly statuses: Map<number, number>;
  readonly seconds: number;
}

/** Opens the connections, sends the request on all of them, and waits until each has the beginning of an answer. */
export async function burst(url: string, connections: number, request: string): Promise<Burst> {
  const { hostname, port } = new URL(url);
  const sockets = await opened(hostname, Number(port), connections);
  const began = performance.now();
  const statuses = new Map<number, number>();
  await Promise.all(
    sockets.map(async (socket) => {
      const status = await firstStatus(socket, request);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  for (const socket of sockets) socket.destroy();
  return { statuses, seconds };
}

/** So few at once that none is lost in the queue of the listening socket. */
const OPENED_AT_ONCE = 200;

async function opened(host: string, port: number, connections: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < connections) {
    const count = Math.min(OPENED_AT_ONCE, connections - sockets.length);
    const some = Array.from({ length: count }, () => connect(port, host));
    await Promise.all(
      some.map(
        (socket) =>
          new Promise((resolve, reject) => {
            socket.once('connect', resolve).once('error', reject);
          }),
      ),
    );
    sockets.push(...some);
  }
  return sockets;
}

/** Far longer than a burst takes on a busy machine. */
const LONGEST_ANSWER_MS = 10 * 60_000;

function firstStatus(socket: Socket, request: string): Promise<number> {
  return new Promise((resolve) => {
    const done = (status: number) => {
      socket.destroy();
      resolve(status);
    };
    socket.once('data', (bytes) => done(Number(bytes.toString('latin1', 9, 12))));
    socket.once('close', () => resolve(0));
    socket.on('error', () => resolve(0));
    socket.setTimeout(LONGEST_ANSWER_MS, () => done(-1));
    socket.write(request);
  });
}

export interface Heartbeats {
  /** Ends them and returns how long each took, in milliseconds, in order; -1 for one that was not accepted. */
  end(): Promise<readonly number[]>;
}

const BEAT_EVERY_MS = 20;
/** Enough for a burst and what follows it. */
const MOST_BEATS = 3000;

/**
 * Sends heartbeats of one node, made beforehand, from a thread that does nothing else. The time in which threads of the
 * process or this one could run, but other work had the processors, is left out.
 */
export async function sendHeartbeats(
  na: TestAuthority,
  pid: number,
  folder: string,
): Promise<Heartbeats> {
  const { key, certId } = await joinedNode(na);
  const beats = Array.from({ length: MOST_BEATS }, () => {
    const { init } = signedByNode(na, '/heartbeat', key, { cert_id: certId, status: 'healthy' });
    const body = String(init.body);
    return `POST /heartbeat HTTP/1.1\r\nHost: na\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  });
  const worker = new Worker(BEATING, {
    eval: true,
    workerData: {
      threads: threadsOf(pid, folder),
      beats,
      port: Number(new URL(na.url).port),
      every: BEAT_EVERY_MS,
    },
  });
  const ended = once(worker, 'message') as Promise<[number[]]>;
  return {
    async end() {
      worker.postMessage('end');
      const [times] = await ended;
      await worker.terminate();
      return times.sort((a, b) => a - b);
    },
  };
}

/** Where the system says how long the threads that run the program could not run. */
function threadsOf(pid: number, folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith('thread-'))
    .map((name) => `/proc/${pid}/task/${name.slice('thread-'.length)}/schedstat`);
}

const BEATING = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { connect } = require('node:net');
  const { readFileSync, readlinkSync } = require('node:fs');
  const { threads, beats, port, every } = workerData;
  const times = [];
  const own = '/proc/' + readlinkSync('/proc/thread-self') + '/schedstat';
  const places = [own, ...threads];
  function waits() {
    return places.map((place) => {
      try {
        return Number(readFileSync(place, 'latin1').split(' ')[1]) / 1e6;
      } catch {
        return 0;
      }
    });
  }
  /** A heartbeat crosses this thread and at most two of the process. */
  function waitedSince(before) {
    const [here, ...there] = waits().map((wait, index) => Math.max(0, wait - before[index]));
    const [first = 0, second = 0] = there.sort((a, b) => b - a);
    return here + first + second;
  }
  let before = [];
  const socket = connect(port, '127.0.0.1');
  let ending = false;
  let began = 0;
  function next() {
    const beat = beats.pop();
    if (ending || beat === undefined) {
      ending = true;
      socket.destroy();
      return parentPort.postMessage(times);
    }
    before = waits();
    began = performance.now();
    socket.write(beat);
  }
  socket.on('data', (bytes) => {
    if (!bytes.includes('}')) return;
    const took = Math.max(0, performance.now() - began - waitedSince(before));
    times.push(bytes.toString('latin1').startsWith('HTTP/1.1 200') ? took : -1);
    setTimeout(next, every);
  });
  socket.on('error', () => undefined);
  socket.once('close', () => {
    if (ending) return;
    times.push(-1);
    ending = true;
    parentPort.postMessage(times);
  });
  socket.once('connect', next);
  parentPort.once('message', () => { ending = true; });
`;

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

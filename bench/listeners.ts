/**
 * Many connected listeners that are notified of what happens each second, while heartbeats run at full speed: their cost
 * to the heartbeats, and the time until they learn of an operator's action.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { systemRuntime } from '../src/base/runtime.ts';
import type { OperatorClient } from '../src/client/operator-client.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { contest, type Settings } from './contest.ts';
import { enrolledFleet } from './fleet.ts';
import { type Latencies, newLatencies } from './load/latency.ts';
import { newKey } from './load/requests.ts';
import { operatorClient, operatorSigner } from './network.ts';
import { latencyText, type Report } from './report.ts';
import { type AuthorityProcess, OTHER, startAuthority, startOther } from './servers.ts';

const PLAN = { nodes: 1000, connections: 64 };
const VIEWERS = 1000;
const EVERY_MS = 1000;
/** The maximum age of a bulletin's content. */
const BULLETIN_MS = 1000;
const OPENED_AT_ONCE = 200;
const TARGET = 0.9;

interface Listener {
  readonly socket: Socket;
  /** Called with all text that arrives. */
  onText: (text: string) => void;
}

interface Audience {
  readonly name: string;
  readonly count: number;
  /** Opens one listener to what happens after this entry of the log. */
  open(na: AuthorityProcess, logSize: number): Promise<Listener>;
  /** Causes an event that listeners are notified of, containing this mark; resolves with the answer. */
  happen(operator: OperatorClient, mark: string): Promise<unknown>;
}

/** Viewers of the live dashboard, and a new treaty each second. */
export function benchViewers(settings: Settings): Promise<Report> {
  return benchAudience(settings, {
    name: 'viewers',
    count: VIEWERS,
    open: openViewer,
    happen: (operator, mark) =>
      operator.issueTreaty({
        subject_sovereign_id: `neighbor-${mark}`,
        subject_public_keys: [newKey().publicKey],
        validity_hours: 24,
      }),
  });
}

/** Readers of `GET /events`, and a new invite each second. */
export function benchEvents(settings: Settings): Promise<Report> {
  return benchAudience(settings, {
    name: 'events',
    count: settings.readers,
    open: openReader,
    happen: (operator, mark) => operator.createInvites({ roles: [`role:${mark}`] }),
  });
}

async function benchAudience(settings: Settings, audience: Audience): Promise<Report> {
  const { name, count } = audience;
  await using na = await startAuthority(settings);
  await using other = await startOther(settings);
  const fleet = await enrolledFleet(na, PLAN);
  const others = other && (await enrolledFleet(other, PLAN));
  const [ours, theirs] = [newLatencies(), newLatencies()];

  function heard(at: AuthorityProcess, { beat }: typeof fleet, delays: Latencies) {
    return async (seconds: number) => {
      const listeners = await openAll(at, audience);
      const beating = beat(seconds);
      await happenUntil(beating, at, listeners, audience, delays);
      for (const { socket } of listeners) socket.destroy();
      return beating;
    };
  }
  const about = `${PLAN.nodes} nodes on ${PLAN.connections} connections, closed loop, ${count} listeners`;
  const report = await contest(settings, name, about, [
    {
      name: `with ${name}`,
      run: heard(na, fleet, ours),
      against: { 'no listeners': TARGET, [OTHER]: null },
    },
    { name: 'no listeners', run: fleet.beat },
    other && others && { name: OTHER, run: heard(other, others, theirs) },
  ]);
  const notes = [
    `from the answer of an action until a listener knows: ${latencyText(ours)}`,
    ...(other ? [`the same with ${OTHER}: ${latencyText(theirs)}`] : []),
  ];
  return { ...report, notes };
}

/** Opens the listeners at the end of the log, a few hundred at a time. */
async function openAll(na: AuthorityProcess, { count, open }: Audience): Promise<Listener[]> {
  await systemRuntime.pause(BULLETIN_MS);
  const { log_size } = await createPublicClient({ url: na.url }).readBulletin();
  const listeners: Listener[] = [];
  while (listeners.length < count) {
    const some = Math.min(OPENED_AT_ONCE, count - listeners.length);
    const opening = Array.from({ length: some }, () => open(na, log_size));
    listeners.push(...(await Promise.all(opening)));
  }
  return listeners;
}

/** Causes an event each second until the round has ended; records how long each one took to reach each listener. */
async function happenUntil(
  round: Promise<unknown>,
  na: AuthorityProcess,
  listeners: readonly Listener[],
  { happen }: Audience,
  delays: Latencies,
): Promise<void> {
  let isDone = false;
  const stop = () => {
    isDone = true;
  };
  round.then(stop, stop);
  const operator = operatorClient(na);
  while (!isDone) {
    const mark = systemRuntime.uuid();
    let answeredAt = Number.POSITIVE_INFINITY;
    for (const listener of listeners) {
      listener.onText = (text) => {
        if (!text.includes(mark)) return;
        delays.record(Math.max(0, systemRuntime.elapsed() - answeredAt));
        listener.onText = () => undefined;
      };
    }
    await happen(operator, mark);
    answeredAt = systemRuntime.elapsed();
    await systemRuntime.pause(EVERY_MS);
  }
}

async function openReader(na: AuthorityProcess, after: number): Promise<Listener> {
  const signed = operatorSigner(na.network, 'GET', '/events', { after: [String(after)] })({});
  const { socket, head } = await opened(na.port, `/events?after=${after}`, signed);
  if (!head.startsWith('HTTP/1.1 200')) throw new Error(head);
  const reader: Listener = { socket, onText: () => undefined };
  socket.on('data', (bytes) => reader.onText(bytes.toString('latin1')));
  return reader;
}

/** A minimal WebSocket client: the server's frames are plain text after a header of a few bytes. */
async function openViewer({ port }: AuthorityProcess): Promise<Listener> {
  const { socket } = await opened(port, '/live?topic=dashboard', {
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Key': createHash('md5').update(systemRuntime.uuid()).digest('base64'),
    'Sec-WebSocket-Version': '13',
  });
  const viewer: Listener = { socket, onText: () => undefined };
  let isWaiting = false;
  socket.on('data', (bytes) => {
    const text = bytes.toString('latin1');
    viewer.onText(text);
    const [, spread] = /"spread_ms":(\d+)/.exec(text) ?? [];
    if (spread === undefined || isWaiting) return;
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      fetchPage(port, (page) => viewer.onText(page));
    }, Math.random() * Number(spread));
  });
  return viewer;
}

/** Sends the head of a request; returns the connection with the first bytes of its answer. */
async function opened(port: number, path: string, headers: { readonly [name: string]: string }) {
  const socket = connect({ host: '127.0.0.1', port });
  const lines = Object.entries({ Host: 'bench', ...headers }).map((pair) => pair.join(': '));
  socket.write(`${[`GET ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  return { socket, head: head.toString('latin1') };
}

/** Viewers share the copies that they got. */
const copies = new Map<string, string>();
const agent = new Agent({ keepAlive: true, maxSockets: VIEWERS });

/** Gets the page as browsers do when their socket says that there is another version. */
function fetchPage(port: number, take: (text: string) => void): void {
  const headers = { 'Accept-Encoding': 'gzip' };
  get({ port, path: '/dashboard', agent, headers }, async (answer) => {
    const pieces: Buffer[] = [];
    for await (const piece of answer as AsyncIterable<Buffer>) pieces.push(piece);
    const etag = String(answer.headers.etag);
    const text = copies.get(etag) ?? gunzipSync(Buffer.concat(pieces)).toString();
    copies.set(etag, text);
    take(text);
  });
}

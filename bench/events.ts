/**
 * Readers of events while heartbeats run at full speed and something happens each second: their cost to the
 * heartbeats, and the time until an event reaches them.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keyFromSeed } from '../src/client/keys.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { readKeyFile } from '../src/keys/key-file.ts';
import { systemRuntime } from '../src/runtime.ts';
import { contest, rateOf, type Settings, type Standing } from './contest.ts';
import { operatorSigner } from './fleet.ts';
import type { Load } from './load.ts';
import { compare, lineOf, type Report } from './report.ts';
import { assertAccepted, type RoundResult } from './round.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

const CONNECTIONS = 64;
const NODES = 1000;
const ENROLLING = { connections: 32, seconds: 600, rate: null };
const FIRST_GUESS = 15_000;
const HEADROOM = 1.3;
const EVENT_EVERY_MS = 1000;
const TARGET = 0.9;

export async function benchEvents(load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads, readers: count } = settings;
  await using na = await startAuthority(cpuProf && join(cpuProf, 'events'), threads);
  const plan = { target: na, ...ENROLLING };
  assertAccepted('joins', await load.ask('enroll', { plan, network: na.network, nodes: NODES }));
  const delays: number[] = [];
  let fastest = FIRST_GUESS;

  async function unread(seconds: number): Promise<RoundResult> {
    await load.ask('sign', { count: Math.ceil(seconds * fastest * HEADROOM) });
    const order = { target: na, connections: CONNECTIONS, rate: null, seconds };
    const result = await load.ask('heartbeats', order);
    fastest = Math.max(fastest, rateOf(result));
    return result;
  }

  async function read(seconds: number): Promise<RoundResult> {
    const readers = await openReaders(na, count);
    const running = unread(seconds);
    delays.push(...(await happenUntil(na, readers, running)));
    for (const { socket } of readers) socket.destroy();
    return running;
  }

  const standings = (await contest(
    [
      { name: `${count} readers`, run: read },
      { name: 'no readers', run: unread },
    ],
    settings,
  )) as [Standing, Standing];
  const sorted = delays.sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(0);
  return {
    benchmark: 'events',
    about: `${NODES} nodes on ${CONNECTIONS} connections, closed loop, an invite a second, ${threads} thread(s)`,
    lines: standings.map(lineOf),
    comparisons: [compare(standings[0], standings[1], TARGET)],
    notes: [`from the answer to its event at a reader: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`],
  };
}

interface Reader {
  readonly socket: Socket;
  /** Calls back with whatever arrives. */
  onText: (text: string) => void;
}

/** They begin at the end of the log, a few hundred at once. */
async function openReaders(na: AuthorityProcess, count: number): Promise<Reader[]> {
  // What a bulletin says may be a second old.
  await sleep(EVENT_EVERY_MS);
  const { log_size } = await createPublicClient({ url: na.url }).bulletin();
  const readers: Reader[] = [];
  while (readers.length < count) {
    const some = Math.min(200, count - readers.length);
    readers.push(
      ...(await Promise.all(Array.from({ length: some }, () => openReader(na, log_size)))),
    );
  }
  return readers;
}

async function openReader({ port, network }: AuthorityProcess, after: number): Promise<Reader> {
  const query = { after: [String(after)] };
  const headers = Object.entries(operatorSigner(network, 'GET', '/events', query)({}));
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const socket = connect({ host: '127.0.0.1', port });
  const reader: Reader = { socket, onText: () => undefined };
  socket.write(`GET /events?after=${after} HTTP/1.1\r\nHost: bench\r\n${lines}\r\n`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  if (!head.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(head.toString());
  socket.on('data', (bytes) => reader.onText(bytes.toString('latin1')));
  return reader;
}

/** Makes an invite a second until the round has ended; how long each took to reach each reader. */
async function happenUntil(
  na: AuthorityProcess,
  readers: readonly Reader[],
  round: Promise<unknown>,
): Promise<number[]> {
  let running = true;
  void round.finally(() => {
    running = false;
  });
  const operator = createOperatorClient({
    url: na.url,
    keyId: 'ops-privileged',
    key: keyFromSeed(readKeyFile(join(na.dataDir, 'keys', 'operator-privileged.key'))),
  });
  const delays: number[] = [];
  while (running) {
    const role = `role:${systemRuntime.uuid()}`;
    let answeredAt = Number.POSITIVE_INFINITY;
    for (const reader of readers) {
      reader.onText = (text) => {
        if (!text.includes(role)) return;
        delays.push(Math.max(0, systemRuntime.elapsed() - answeredAt));
        reader.onText = () => undefined;
      };
    }
    await operator.invite({ roles: [role] });
    answeredAt = systemRuntime.elapsed();
    await sleep(EVENT_EVERY_MS);
  }
  return delays;
}

/**
 * Readers of events while heartbeats run at full speed and something happens each second: their cost to the
 * heartbeats, and the time until an event reaches them.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPublicClient } from '../src/client/public-client.ts';
import { CONNECTIONS, enrolledSide, type Listener, NODES } from './audience.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { operatorSigner } from './fleet.ts';
import type { Load } from './load.ts';
import { delayText } from './probes.ts';
import { compare, lineOf, type Report } from './report.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

/** The maximum age of a bulletin's content. */
const BULLETIN_MS = 1000;
const TARGET = 0.9;

export async function benchEvents(load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads, readers: count } = settings;
  await using na = await startAuthority(cpuProf && join(cpuProf, 'events'), threads);
  const { delays, heard, unheard } = await enrolledSide(load, na, {
    open: () => openReaders(na, count),
    happen: (operator, mark) => operator.createInvites({ roles: [`role:${mark}`] }),
  });
  const standings = (await contest(
    [
      { name: `${count} readers`, run: heard },
      { name: 'no readers', run: unheard },
    ],
    settings,
  )) as [Measured, Measured];
  return {
    benchmark: 'events',
    about: `${NODES} nodes on ${CONNECTIONS} connections, closed loop, an invite a second, ${threads} thread(s)`,
    lines: standings.map(lineOf),
    comparisons: [compare(standings[0], standings[1], TARGET)],
    notes: [`from the answer to its event at a reader: ${delayText(delays)}`],
  };
}

/** Opens readers at the end of the log, a few hundred at a time. */
async function openReaders(na: AuthorityProcess, count: number): Promise<Listener[]> {
  await sleep(BULLETIN_MS);
  const { log_size } = await createPublicClient({ url: na.url }).readBulletin();
  const readers: Listener[] = [];
  while (readers.length < count) {
    const some = Math.min(200, count - readers.length);
    readers.push(
      ...(await Promise.all(Array.from({ length: some }, () => openReader(na, log_size)))),
    );
  }
  return readers;
}

async function openReader({ port, network }: AuthorityProcess, after: number): Promise<Listener> {
  const query = { after: [String(after)] };
  const headers = Object.entries(operatorSigner(network, 'GET', '/events', query)({}));
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const socket = connect({ host: '127.0.0.1', port });
  const reader: Listener = { socket, onText: () => undefined };
  socket.write(`GET /events?after=${after} HTTP/1.1\r\nHost: bench\r\n${lines}\r\n`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  if (!head.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(head.toString());
  socket.on('data', (bytes) => reader.onText(bytes.toString('latin1')));
  return reader;
}

/**
 * Thousands of viewers of a live page that never read what they get, while the page changes all the time: the others
 * hear of each version, memory stays within a bound, and the connections of the silent ones end.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'undici';
import { residentMib } from './support/bursts.ts';
import { type ChildServer, startChildServer } from './support/child-server.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { UPGRADE } from './support/raw-http.ts';
import { newKey, operate } from './support/requests.ts';
import { until } from './support/until.ts';

/** Half of them answer every ping, without having read it. */
const UNREAD = 5000;
const READERS = 10;
/** Each is a version, or one of several that a version shows. */
const CHANGES = 2500;
/** What the treaties of this test take, with room. */
const MOST_MIB = 512;
const AT_ONCE = 10;
/** An empty pong, as clients send it. */
const PONG = Buffer.from('8a8000000000', 'hex');
/** As long as a ping may be. */
const PING = Buffer.concat([Buffer.from('89fd00000000', 'hex'), Buffer.alloc(125)]);

test(`${UNREAD} viewers that never read take little memory, and ${READERS} others hear of every version`, async () => {
  await using server = await startChildServer(makeNetworkFolder().folder);
  const readers = await Promise.all(Array.from({ length: READERS }, () => reader(server)));
  await change(server, 300);
  const unread: Socket[] = [];
  for (let i = 0; i < UNREAD; i += 1) unread.push(await neverReading(server));
  const before = memoryOf(server);
  const open = connectionsOf(server);
  const pongs = setInterval(() => {
    for (const socket of unread.slice(0, UNREAD / 2)) socket.write(PONG);
  }, 10_000);

  let grown = 0;
  for (let changes = 0; changes < CHANGES; changes += 100) {
    await change(server, 100);
    grown = Math.max(grown, memoryOf(server) - before);
  }
  // Connections without any answer last a minute.
  await until(() => open - connectionsOf(server) > 0.9 * (UNREAD / 2));
  clearInterval(pongs);
  grown = Math.max(grown, memoryOf(server) - before);
  assert.ok(grown < MOST_MIB, `${grown} MiB more after ${CHANGES} changes`);

  const version = await shownVersion(server);
  for (const { heard } of readers) {
    while (heard.at(-1) !== version) await new Promise(setImmediate);
    assert.deepEqual(heard, readers[0]?.heard);
  }
  for (const { socket } of readers) socket.close();
  for (const socket of unread) socket.destroy();
});

test('viewers that ask all the time whether the other side is there, and never read that it is, take little memory', async () => {
  await using server = await startChildServer(makeNetworkFolder().folder);
  const unread: Socket[] = [];
  for (let i = 0; i < 600; i += 1) unread.push(await neverReading(server));
  const before = memoryOf(server);
  const pings = Buffer.concat(Array.from({ length: 500 }, () => PING));
  let grown = 0;
  // What fills the buffers of the system is no memory of the process; all of them together get a message after ten seconds.
  for (const began = performance.now(); performance.now() - began < 9000; ) {
    for (const socket of unread) if (socket.writableLength < 1024 * 1024) socket.write(pings);
    await pause(20);
    grown = Math.max(grown, memoryOf(server) - before);
  }
  for (const socket of unread) socket.destroy();
  assert.ok(grown < 64, `${grown} MiB more`);
});

function memoryOf({ process }: ChildServer): number {
  return residentMib(process.pid ?? 0);
}

/** Descriptors of the process; the others of them hardly change. */
function connectionsOf({ process }: ChildServer): number {
  return readdirSync(`/proc/${process.pid}/fd`).length;
}

/** Each treaty is a change of the page. */
async function change({ na }: ChildServer, treaties: number): Promise<number> {
  for (let done = 0; done < treaties; done += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, () => {
      const key = newKey().publicKey;
      const terms = { subject_sovereign_id: key, subject_public_keys: [key] };
      return operate(na, '/admin/recognition-treaties', terms);
    });
    for (const { status } of await Promise.all(some)) assert.equal(status, 200);
  }
  return treaties;
}

async function shownVersion({ na }: ChildServer): Promise<string | undefined> {
  const page = await (await fetch(`${na.url}/connectome`)).text();
  return / data-version="([^"]+)"/.exec(page)?.[1];
}

interface Reader {
  readonly socket: WebSocket;
  /** The versions in the order of their messages. */
  readonly heard: readonly string[];
}

async function reader({ na }: ChildServer): Promise<Reader> {
  const socket = new WebSocket(`${na.url.replace('http', 'ws')}/live?topic=connectome`);
  const heard: string[] = [];
  socket.addEventListener('message', ({ data }) => {
    const { version } = JSON.parse(String(data)) as { readonly version?: string };
    if (version !== undefined) heard.push(version);
  });
  await once(socket, 'open');
  return { socket, heard };
}

/** Resolves once it is a WebSocket; from then on nothing of it is read. */
async function neverReading({ na }: ChildServer): Promise<Socket> {
  const { hostname, port } = new URL(na.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(UPGRADE);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  assert.match(answer.toString('latin1'), /^HTTP\/1\.1 101 /);
  return socket;
}

/** Events [events-1]: the audit log in real time, for any number of readers, without gaps, and what readers accept. */
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import { eventText } from '../src/authority/events.ts';
import { httpFetch } from '../src/cli/connection/server.ts';
import { AuthorityError } from '../src/client/authority-error.ts';
import {
  BEFORE_FIRST,
  EventChainError,
  type EventPlace,
  type LoggedEvent,
  nextEvent,
  readEvents,
} from '../src/client/events.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import type { Fetch } from '../src/client/options.ts';
import { createEventLog } from '../src/edge/event-readers.ts';
import { type AuditEntry, GENESIS_HASH } from '../src/store/store.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { SECOND } from './support/clock.ts';
import { cpuOf } from './support/cpu.ts';
import { indexesOf, invites, numbers } from './support/logged-events.ts';
import { untilMetric } from './support/metrics.ts';
import { rawConnection } from './support/raw-http.ts';
import { get, newKey, operate, operatorRequest, outcome, send } from './support/requests.ts';
import { readVectors } from './support/vectors.ts';

for (const threads of ['1', '2']) {
  suite(`events, on ${threads === '1' ? 'one thread' : 'several threads'}`, async () => {
    const na = await startTestAuthority({ flags: { threads } });
    after(() => na[Symbol.asyncDispose]());

    test('include everything logged, and then everything that happens, once and in order', async () => {
      await invites(na, 3);
      await using reader = await openReader(na, '/events');
      await reader.until((events) => events.length >= 3);
      await invites(na, 2);
      const events = await reader.until((read) => read.length >= 5);
      assert.deepEqual(indexesOf(events), [1, 2, 3, 4, 5]);
      const entries = events.map(({ entry, hash }) => ({ ...entry, hash }) as AuditEntry);
      assert.equal((await verifyAuditChain(entries, GENESIS_HASH)).valid, true);
      assert.equal(entries.at(-1)?.event_type, 'invite_created');
    });

    test('end when the operator’s key is revoked, before any time passes', async () => {
      const key = newKey();
      const added = { key_id: `ops-${threads}`, public_key: key.publicKey, tier: 'standard' };
      await operate(na, '/admin/operator-keys', added);
      const operator = { keyId: added.key_id, key };
      await using reader = await openReader(na, '/events', { operator });
      await using other = await openReader(na, '/events');
      await reader.until((events) => events.length > 0);
      await operate(na, `/admin/operator-keys/${added.key_id}/revoke`);
      await reader.ended;
      assert.equal(outcome(await open(na, '/events', { operator })), '401 admin_auth_failed');
      await invites(na, 1);
      await other.until((events) => events.at(-1)?.entry.event_type === 'invite_created');
    });

    test('are read by the client across lost connections, and altered ones are refused', async () => {
      const read = await taken(clientOf(na).events(), 4);
      assert.deepEqual(indexesOf(read), [1, 2, 3, 4]);
      const [, place] = read;
      assert.deepEqual(await taken(clientOf(na).events({ after: place ?? 0 }), 2), read.slice(2));
    });

    // What a request asks for is read in the same way on each thread.
    if (threads !== '1') return;

    test('have the bytes of the contract, and are numbered as the bulletin says', async () => {
      const { headers, text } = await whole(na, '/events?follow=0');
      assert.equal(headers.get('content-type'), 'text/event-stream; charset=utf-8');
      assert.equal(headers.get('x-accel-buffering'), 'no');
      const [start, ...events] = text.split('\n\n').slice(0, -1);
      assert.equal(start, ':');
      for (const [index, event] of events.entries()) {
        assert.match(event, new RegExp(`^id: ${index + 1}\\ndata: {.*,"index":${index + 1}}$`));
      }
      const lines = await whole(na, '/events?follow=0', { accept: 'application/x-ndjson' });
      assert.equal(lines.text, text);
      na.clock.advance(2 * SECOND);
      assert.equal((await get(na, '/bulletin')).body.log_size, events.length);
    });

    test('continue after any event, by the query or by Last-Event-ID', async () => {
      const all = eventsIn((await whole(na, '/events?follow=0')).text);
      const wanted = all.slice(3);
      const fromTheFirst = await whole(na, '/events?after=&follow=0');
      assert.deepEqual(eventsIn(fromTheFirst.text), all, 'an empty value counts as absent');
      const byQuery = await whole(na, '/events?after=3&follow=0');
      assert.deepEqual(eventsIn(byQuery.text), wanted);
      const headers = { 'last-event-id': '3' };
      assert.deepEqual(
        eventsIn((await whole(na, '/events?after=1&follow=0', headers)).text),
        wanted,
      );
      await using reader = await openReader(na, `/events?after=${all.length}`);
      await invites(na, 1);
      const [next] = await reader.until((read) => read.length > 0);
      assert.equal(next?.index, all.length + 1);
    });

    test('are refused for an invalid request', async () => {
      for (const [path, refused] of [
        ['/events?after=-1', '400 invalid_after'],
        ['/events?after=1.0', '400 invalid_after'],
        ['/events?after=x', '400 invalid_after'],
        ['/events?after=99999999999999999', '400 invalid_after'],
        ['/events?follow=2', '400 invalid_follow'],
        ['/events?after=9999', '409 after_ahead'],
      ] as const) {
        assert.equal(outcome(await open(na, path)), refused, path);
      }
      const lastEventId = { headers: { 'last-event-id': 'x' } };
      assert.equal(outcome(await open(na, '/events', lastEventId)), '400 invalid_after');
      assert.equal(outcome(await send(na, 'GET', '/events')), '401 admin_auth_failed');
      const head = await open(na, '/events', { method: 'HEAD' });
      assert.deepEqual([head.status, head.text], [200, '']);
    });
  });
}

test('a long log is read in pages from any position while it grows', async () => {
  await using before = await startTestAuthority();
  await operate(before, '/admin/invite', { count: 300 });
  await invites(before, 3);
  await operate(before, '/admin/invite', { count: 297 });
  await using na = await before.restart();
  const starts = [0, 1, 63, 64, 65, 301, 599, 600];
  const readers = await Promise.all(starts.map((from) => openReader(na, `/events?after=${from}`)));
  for (let more = 0; more < 5; more += 1) await invites(na, 1);
  for (const [index, from] of starts.entries()) {
    const reader = readers[index];
    const events = (await reader?.until((read) => read.at(-1)?.index === 605)) ?? [];
    assert.deepEqual([events[0]?.index, events.length], [from + 1, 605 - from]);
    await reader?.[Symbol.asyncDispose]();
  }
});

/** Their entries have more than a hundred bytes for each. */
const LONG_ROLES = Array.from({ length: 64 }, (_, index) => `role:${index}-${'x'.repeat(100)}`);

test('the entries of long requests are read back in parts, each entry once', async (t) => {
  await using before = await startTestAuthority();
  for (let requests = 0; requests < 4; requests += 1) {
    const { status } = await operate(before, '/admin/invite', { count: 1000, roles: LONG_ROLES });
    assert.equal(status, 200);
  }
  await using na = await before.restart();
  const cpu = await cpuOf(async () => {
    const { text } = await whole(na, '/events?follow=0');
    assert.match(text, /,"index":4000}\n\n$/);
  });
  t.diagnostic(`${cpu} ms of CPU`);
  assert.ok(cpu < 5000, `${cpu} ms of CPU`);
});

test('a reader that reads nothing is disconnected, and can read again what it missed', async () => {
  await using na = await startTestAuthority();
  assert.equal(
    (await operate(na, '/admin/invite', { count: 1000, roles: LONG_ROLES })).status,
    200,
  );
  const connection = await rawConnection(na.url);
  using _ = connection;
  connection.socket.pause();
  connection.write(requestText(na, '/events'));
  await untilMetric(na, 'mesh_na_event_readers 1');
  await using quick = await openReader(na, '/events?after=990');
  await untilMetric(na, 'mesh_na_event_readers_cut_total 1', () => na.clock.advance(SECOND));
  await untilMetric(na, 'mesh_na_event_readers 1');
  await invites(na, 1);
  await quick.until((events) => events.length === 11);
  connection.socket.resume();
  const got = eventsIn(bodyOf(await connection.closed()));
  const last = got.at(-1);
  assert.ok(last !== undefined && last.index < 1001);
  const rest = await taken(clientOf(na).events({ after: last }), 1001 - last.index);
  assert.deepEqual(indexesOf([...got, ...rest]), numbers(1, 1001));
});

test('a reader gets signs of life, and is disconnected when the authority stops', async () => {
  await using na = await startTestAuthority();
  await using reader = await openReader(na, '/events');
  na.clock.advance(16 * SECOND);
  await reader.untilText(':\n\n:\n\n');
  await na.stop();
  await reader.ended;
});

test('the number of readers is limited, and a place is free again when one leaves', async () => {
  // With several threads, each would have only a share of the allowance.
  const flags = { threads: '1' };
  await using na = await startTestAuthority({ flags, environment: { MESH_EVENT_READERS: '2' } });
  await using _first = await openReader(na, '/events');
  const second = await openReader(na, '/events');
  const refused = await open(na, '/events');
  assert.equal(outcome(refused), '503 too_many_event_readers');
  assert.equal(refused.headers.get('retry-after'), '5');
  await second[Symbol.asyncDispose]();
  await untilMetric(na, 'mesh_na_event_readers 1');
  await using _third = await openReader(na, '/events');
});

const READERS = Number(process.env.MESH_TEST_EVENT_READERS ?? '15');
/**
 * A thousand readers that start together keep this process busy for longer than the authority waits for a request on an
 * idle connection, so requests would be lost that must not be sent twice.
 */
const BEGIN_AT_ONCE = 50;

test('readers whose connections are cut at random miss nothing and get nothing twice', async (t) => {
  await using na = await startTestAuthority({ flags: { threads: '2' } });
  const events = 60;
  await operate(na, '/admin/invite', { count: 3 });
  const seen: LoggedEvent[][] = [];
  const reading: Promise<void>[] = [];
  let cuts = 0;
  const client = createOperatorClient({ ...signingFor(na), fetch: httpFetch(undefined) });

  async function read(got: LoggedEvent[], reader: number, begun: () => void): Promise<void> {
    let random = reader + 1;
    while (got.length < events) {
      random = (random * 48_271) % 2_147_483_647;
      const stop = new AbortController();
      for await (const event of client.events({ after: got.at(-1) ?? 0, signal: stop.signal })) {
        got.push(event);
        begun();
        if (got.length >= events || random % 7 === got.length % 7) stop.abort();
      }
      cuts += 1;
    }
  }
  function begin(): Promise<void> {
    const got: LoggedEvent[] = [];
    return new Promise((resolve, reject) => {
      const ended = read(got, seen.push(got) - 1, resolve);
      ended.catch(reject);
      reading.push(ended);
    });
  }
  while (seen.length < READERS) {
    const some = Math.min(BEGIN_AT_ONCE, READERS - seen.length);
    await Promise.all(Array.from({ length: some }, begin));
  }
  for (let written = 3; written < events; written += 3) {
    await operate(na, '/admin/invite', { count: 3 });
  }
  await Promise.all(reading);
  t.diagnostic(`${READERS} readers, ${events} events, ${cuts} connections`);
  for (const got of seen) assert.deepEqual(indexesOf(got), numbers(1, events));
});

interface OpenOptions {
  readonly method?: 'GET' | 'HEAD';
  readonly headers?: Readonly<Record<string, string>>;
  readonly operator?: TestAuthority['standard'];
}

function signedHeaders(na: TestAuthority, path: string, { headers, operator }: OpenOptions = {}) {
  const call = { method: 'GET', operator: operator ?? na.standard };
  const { init } = operatorRequest(na, path, {}, call);
  return { ...init.headers, ...headers };
}

/** Reads an answer to its end. */
function whole(na: TestAuthority, path: string, headers: Readonly<Record<string, string>> = {}) {
  return send(na, 'GET', path, { headers: signedHeaders(na, path, { headers }) });
}

/** Sends a request whose answer must not be a stream. */
function open(na: TestAuthority, path: string, options: OpenOptions = {}) {
  return send(na, options.method ?? 'GET', path, { headers: signedHeaders(na, path, options) });
}

interface Reader extends AsyncDisposable {
  until(isThere: (events: readonly LoggedEvent[]) => boolean): Promise<readonly LoggedEvent[]>;
  untilText(text: string): Promise<void>;
  /** Resolves when the authority has ended the answer. */
  readonly ended: Promise<void>;
}

/** Reads lines of JSON unless the options request another form. */
async function openReader(
  na: TestAuthority,
  path: string,
  options: OpenOptions = {},
): Promise<Reader> {
  const stop = new AbortController();
  const headers = signedHeaders(na, path, options);
  const response = await fetch(na.url + path, { headers, signal: stop.signal });
  assert.equal(response.status, 200);
  let text = '';
  let readTo = 0;
  const events: LoggedEvent[] = [];
  let wake = () => {};
  const ended = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      const end = text.lastIndexOf('\n') + 1;
      events.push(...eventsIn(text.slice(readTo, end), events.at(-1)));
      readTo = end;
      wake();
    }
  })();
  ended.catch(() => undefined);
  async function until<Found>(find: () => Found | null): Promise<Found> {
    for (;;) {
      const found = find();
      if (found !== null) return found;
      const more = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await Promise.race([more, ended.then(() => Promise.reject(new Error(`It ended: ${text}`)))]);
    }
  }
  return {
    ended,
    until: (isThere) => until(() => (isThere(events) ? [...events] : null)),
    untilText: async (wanted) => void (await until(() => text.includes(wanted) || null)),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended.catch(() => undefined);
    },
  };
}

/** The complete events in the lines of a stream, each checked against the one before. */
function eventsIn(text: string, last?: LoggedEvent): LoggedEvent[] {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const lines = [...whole.matchAll(/^data: (.*)$/gm)].map(([, event = '']) => event);
  const events: LoggedEvent[] = [];
  for (const line of lines) {
    const before = Number(/"index":(\d+)\}$/.exec(line)?.[1]) - 1;
    events.push(nextEvent(line, events.at(-1) ?? last ?? { index: before, hash: null }));
  }
  return events;
}

/** Without the head, and without the lengths between the chunks. */
function bodyOf(response: string): string {
  const chunks = response.slice(response.indexOf('\r\n\r\n') + 4);
  return chunks.replace(/(^|\r\n)[0-9a-f]+\r\n/g, '').replace(/\r\n$/, '');
}

function requestText(na: TestAuthority, path: string): string {
  const lines = Object.entries(signedHeaders(na, path));
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `GET ${path} HTTP/1.1\r\nHost: na\r\n${head}\r\n`;
}

function clientOf(na: TestAuthority) {
  return createOperatorClient(signingFor(na));
}

/** Uses native signing: otherwise a thousand readers in this process would delay each other. */
function signingFor(na: TestAuthority) {
  const { url, audience, standard, clock } = na;
  const { publicKey, sign } = standard.key;
  const key = { publicKey, sign: (bytes: Uint8Array) => Buffer.from(sign(bytes), 'base64') };
  return { url, audience, keyId: standard.keyId, key, now: clock.now };
}

async function taken(events: AsyncIterable<LoggedEvent>, count: number): Promise<LoggedEvent[]> {
  const read: LoggedEvent[] = [];
  if (count === 0) return read;
  for await (const event of events) {
    read.push(event);
    if (read.length === count) break;
  }
  return read;
}

// What a reader of events accepts and refuses [events-4], and the bytes in which they are sent [events-3].

interface Vectors {
  readonly events: readonly { index: number; entry: string; hash: string }[];
  readonly lines: string;
  readonly sse: string;
  readonly refused: readonly { after: number; problem: string; line: string }[];
}

const { events, lines, sse, refused } = readVectors<Vectors>('events.json');
const texts = events.map(({ index, hash, entry }) => eventText(index, hash, entry));
const places: readonly EventPlace[] = [BEFORE_FIRST, ...events];

test('the vectors are accepted one after the other', () => {
  let last = BEFORE_FIRST;
  for (const [index, text] of texts.entries()) {
    const event = nextEvent(text, last);
    assert.equal(event.hash, events[index]?.hash);
    last = event;
  }
});

test('the events of webhooks and of readers have the bytes of the vectors', async () => {
  assert.equal(texts.map((text) => `${text}\n`).join(''), lines);
  assert.equal(await sent('as they happen'), sse);
  assert.equal(await sent('from the log'), sse);
});

for (const { after, problem, line } of refused) {
  test(`after event ${after}, ${problem} is detected in ${line.slice(-50)}`, () => {
    const last = places[after] ?? BEFORE_FIRST;
    assert.throws(() => nextEvent(line, last), { name: 'EventChainError', problem });
  });
}

test('a client that is offered another log, or one with a gap, refuses it and stops reading', async () => {
  for (const [offered, problem, read] of [
    [[texts[0], texts[2]], 'gap', 1],
    [[texts[0], texts[1], texts[1]], 'gap', 2],
    [[texts[1]], 'gap', 0],
    [[texts[0], texts[1]?.replace('compromise', 'compr0mise')], 'altered_entry', 1],
    [[texts[0], 'nonsense'], 'malformed', 1],
  ] as const) {
    const got: number[] = [];
    await assert.rejects(
      async () => {
        for await (const { index } of eventsOf(offered)) got.push(index);
      },
      new EventChainError(problem, read + 1),
    );
    assert.equal(got.length, read);
  }
  const place = { index: 1, hash: '1'.repeat(64) };
  await assert.rejects(eventsOf([texts[1]], place).next(), new EventChainError('broken_link', 2));
});

test('a client continues after the last event when a connection is lost, and ends at a refusal', async () => {
  const asked: string[] = [];
  const answers = [
    () => new Response(`id: 1\ndata: ${texts[0]}\n\n`),
    () => Promise.reject(new TypeError('fetch failed')),
    () => new Response('{}', { status: 503 }),
    () => new Response(`:\n\ndata: ${texts[1]}\n\nid: 3\ndata: ${texts[2]}\n\n`),
    () =>
      Response.json(
        { error: { code: 'admin_auth_failed', message: 'no', details: {} } },
        { status: 401 },
      ),
  ];
  const fetch: Fetch = async (url) => {
    asked.push(new URL(url).searchParams.get('after') ?? '');
    return (answers.shift() ?? assert.fail)();
  };
  const got: number[] = [];
  const server = { url: 'http://na.example', fetch, wait: () => Promise.resolve() };
  await assert.rejects(
    async () => {
      for await (const { index } of readEvents(server, async () => ({}), {})) got.push(index);
    },
    (error) => error instanceof AuthorityError && error.code === 'admin_auth_failed',
  );
  assert.deepEqual(got, [1, 2, 3]);
  assert.deepEqual(asked, ['0', '1', '1', '1', '3']);
});

test('of the newest events, few renderings are kept, wherever readers begin', () => {
  const log = createEventLog(() => Promise.resolve([]));
  log.append(Array.from({ length: 1000 }, (_, index) => `{"index":${index + 1}}`));
  const renderings = () => Array.from({ length: 1000 }, (_, index) => log.after(index));
  const before = renderings();
  const kept = renderings().filter((piece) => before.includes(piece));
  assert.ok(kept.length <= 64, `${kept.length} are kept`);
  assert.equal(log.after(999), log.after(999), 'readers at the same place share one');
});

/** The events that a client reads from an authority that sends only these. */
function eventsOf(offered: readonly (string | undefined)[], after: EventPlace | number = 0) {
  const text = offered.map((event) => `data: ${event}\n\n`).join('');
  const fetch: Fetch = async () => new Response(text);
  const server = { url: 'http://na.example', fetch };
  return readEvents(server, async () => ({}), { after, follow: false });
}

/** What a reader receives from the beginning. */
async function sent(how: 'as they happen' | 'from the log'): Promise<string> {
  const log = createEventLog(async (after, most) => texts.slice(after, after + most));
  log.beginAfter(how === 'from the log' ? texts.length : 0);
  if (how === 'as they happen') log.append(texts);
  let text = '';
  for (let last = 0; last < texts.length; ) {
    const piece = await log.after(last);
    assert.ok(piece !== null);
    text += piece.text;
    last = piece.last;
  }
  return text;
}

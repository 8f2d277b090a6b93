/** What a reader of events accepts and refuses [events-4], and the bytes in which they are sent [events-3]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventText } from '../src/authority/events.ts';
import { AuthorityError } from '../src/client/authority-error.ts';
import {
  BEFORE_FIRST,
  EventChainError,
  type EventPlace,
  nextEvent,
  readEvents,
} from '../src/client/events.ts';
import type { Fetch } from '../src/client/options.ts';
import { createEventLog } from '../src/edge/event-readers.ts';
import { readVectors } from './support/vectors.ts';

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

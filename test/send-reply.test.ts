/** Every kind of answer over a real connection that stays open or is closed afterward. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Closing, type PieceWriter, sendReply } from '../src/edge/http/send-reply.ts';
import type { PiecewiseBody, Reply } from '../src/edge/reply.ts';
import { rawConnection } from './support/raw-http.ts';
import { listenApp } from './support/uws-app.ts';

const LARGE = 'large '.repeat(100_000);
/** All characters of each text are below U+0100. */
const SHORT = 'sh\u00f6rt';
const PIECES = ['one', '', 'two', 'thr\u00e9e'];

const BODIES: Readonly<Record<string, () => Reply['body']>> = {
  short: () => SHORT,
  large: () => LARGE,
  pieces: () => pieces(PIECES),
  'no-pieces': () => pieces([]),
};

let app: Awaited<ReturnType<typeof listenApp>>;

before(async () => {
  // /<body>/<status>/<closing>
  app = await listenApp((app) =>
    app.any('/:body/:status/:closing', (res, req) => {
      const writer: PieceWriter = { res, aborted: false, onGone: null };
      res.onAborted(() => {
        writer.aborted = true;
        writer.onGone?.();
      });
      const reply: Reply = {
        status: Number(req.getParameter(1)),
        contentType: 'text/plain',
        headerLines: 'Cache-Control: no-store',
        refusal: null,
        contentSecurityPolicy: null,
        body: BODIES[req.getParameter(0) ?? '']?.() ?? '',
      };
      const closing = req.getParameter(2) as Closing;
      const request = { id: 'id', sentMethod: req.getMethod().toUpperCase() };
      void sendReply(writer, request, reply, closing, nextTurn);
    }),
  );
});

after(() => app[Symbol.dispose]());

function pieces(texts: readonly string[]): PiecewiseBody {
  const left = [...texts];
  return { next: async () => left.shift() ?? null, abandon: () => undefined };
}

/** A text sent as UTF-8, as the connection shows it. */
function received(text: string): string {
  return Buffer.from(text).toString('latin1');
}

const CASES = [
  ['GET', 'short', '200', received(SHORT)],
  ['GET', 'short', '304', ''],
  ['GET', 'large', '200', LARGE],
  ['GET', 'pieces', '200', received(PIECES.join(''))],
  ['GET', 'no-pieces', '200', ''],
  ['HEAD', 'short', '200', ''],
  ['HEAD', 'large', '200', ''],
  ['HEAD', 'pieces', '200', ''],
] as const;

function endOf(method: string, body: string, expected: string): string {
  if (method === 'GET' && body === 'pieces') return '\r\n0\r\n\r\n';
  return expected === '' ? '\r\n\r\n' : expected;
}

/** The content after the head, parsed as strictly as its framing is defined (RFC 9112, 7.1). */
function contentOf(head: string, sent: string): string {
  if (!head.includes('Transfer-Encoding: chunked')) return sent;
  let content = '';
  let left = sent;
  for (;;) {
    const [line = '', digits = ''] = /^([0-9a-f]+)\r\n/i.exec(left) ?? [];
    assert.notEqual(digits, '', `No chunk begins with ${JSON.stringify(left.slice(0, 40))}`);
    const length = Number.parseInt(digits, 16);
    content += left.slice(line.length, line.length + length);
    left = left.slice(line.length + length);
    assert.ok(left.startsWith('\r\n'), 'a chunk ends with a line break');
    left = left.slice(2);
    if (length > 0) continue;
    assert.equal(left, '', 'nothing follows the last chunk');
    return content;
  }
}

for (const [method, body, status, expected] of CASES) {
  for (const closing of ['stays', 'asked', 'forced'] as const) {
    // Answers to requests refused unread are short, and never generated while they are sent.
    if (closing === 'forced' && (body !== 'short' || status === '304')) continue;
    test(`${method} of ${body}, ${status}: the connection ${closing}, and the answer says so once`, async () => {
      using connection = await rawConnection(app.url);
      connection.write(`${method} /${body}/${status}/${closing} HTTP/1.1\r\nHost: na\r\n\r\n`);
      if (closing === 'forced') await connection.closed();
      else await connection.until(endOf(method, body, expected));
      const [head = '', ...rest] = connection.received().split('\r\n\r\n');
      const lines = head.split('\r\n').filter((line) => /^connection:/i.test(line));
      assert.deepEqual(lines, closing === 'stays' ? [] : ['Connection: close']);
      assert.equal(contentOf(head, rest.join('\r\n\r\n')), expected);
    });
  }
}

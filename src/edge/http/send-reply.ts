/**
 * Sends a finished reply as its body requires: at the pace of the client, in pieces produced while sending, or as a
 * stream. Otherwise uWebSockets.js would copy the unsent rest for each client, for every pipelined answer. It closes
 * connections that accept nothing for about 12 s, and those that send another request before accepting an answer.
 */
import type { HttpResponse } from 'uWebSockets.js';
import { utf8, writeChunks } from '../chunks.ts';
import { isPiecewise, isStream, type PiecewiseBody, type Reply } from '../reply.ts';
import type { Request } from '../request/route.ts';

/** Writes a finished reply as the bytes of a response. */

const STATUS_TEXT: Readonly<Record<number, string>> = {
  201: '201 Created',
  304: '304 Not Modified',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  408: '408 Request Timeout',
  409: '409 Conflict',
  410: '410 Gone',
  413: '413 Payload Too Large',
  422: '422 Unprocessable Entity',
  426: '426 Upgrade Required',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
  507: '507 Insufficient Storage',
};

/** No answer may be framed, sniffed or load anything; a page has a policy of its own. */
const SECURITY_LINES = securityLines("default-src 'none'; frame-ancestors 'none'");

function securityLines(contentSecurityPolicy: string): string {
  return [
    'X-Content-Type-Options: nosniff',
    'X-Frame-Options: DENY',
    'Referrer-Policy: no-referrer',
    `Content-Security-Policy: ${contentSecurityPolicy}`,
  ].join('\r\n');
}

/** What a response shows of its request. */
type Answered = Pick<Request, 'id' | 'sentMethod'>;

/** What happens to the connection after an answer. */
export type Closing =
  | 'stays'
  /** The client is asked to close it; where uWebSockets.js supports it, the server closes it itself. */
  | 'asked'
  /** The server closes it without reading anything more. */
  | 'forced';

export function writeReply(
  res: HttpResponse,
  request: Answered,
  reply: Reply,
  body: string | Uint8Array,
  closing: Closing,
): void {
  if (reply.status === 304) {
    // No length is sent, because the client may have another encoding of the document.
    writeWithoutBody(res, request, reply, null, closing);
  } else if (request.sentMethod === 'HEAD') {
    const length = reply.isPassedOn === true ? null : Buffer.byteLength(body);
    writeWithoutBody(res, request, reply, length, closing);
  } else {
    writeHead(res, request, reply);
    endAndClose(res, body, closing);
  }
}

/**
 * Ends a response without a body. The length that a GET would have is written as a plain header line, because
 * uWebSockets.js would otherwise wait for that many bytes. It closes the connection only after a length that it wrote
 * itself, so the GET's length is omitted if the connection must be closed.
 */
function writeWithoutBody(
  res: HttpResponse,
  request: Answered,
  reply: Reply,
  length: number | null,
  closing: Closing,
): void {
  if (closing === 'forced') {
    writeHead(res, request, reply);
    endAndClose(res, '', closing);
  } else {
    writeHead(
      res,
      request,
      reply,
      `${closingLine(closing)}${length === null ? '' : `\r\nContent-Length: ${length}`}`,
    );
    res.endWithoutBody();
  }
}

/** uWebSockets.js writes the `Connection: close` header itself. */
function endAndClose(res: HttpResponse, body: string | Uint8Array, closing: Closing): void {
  res.end(utf8(body), closing !== 'stays');
}

/** The header line for answers after which uWebSockets.js cannot close the connection itself. */
function closingLine(closing: Closing): string {
  return closing === 'stays' ? '' : '\r\nConnection: close';
}

/**
 * All lines after the first are written as part of the second header's value: each call into native code
 * costs as much as building its strings.
 */
function writeHead(res: HttpResponse, { id }: Answered, reply: Reply, furtherLines = ''): void {
  const { status, contentType, headerLines, contentSecurityPolicy, isPassedOn } = reply;
  const security =
    contentSecurityPolicy === null ? SECURITY_LINES : securityLines(contentSecurityPolicy);
  const lines =
    isPassedOn === true ? headerLines : `X-Request-ID: ${id}\r\n${headerLines}\r\n${security}`;
  // uWebSockets.js adds the status 200 itself.
  if (status !== 200) res.writeStatus(STATUS_TEXT[status] ?? `${status} Status`);
  res.writeHeader('Content-Type', `${contentType}\r\n${lines}${furtherLines}`);
}

/**
 * Wraps a handler so that it ends the connection if it throws: uWebSockets.js aborts the process if a request is left
 * unanswered, before the error could be logged.
 */
export function orCut<Asked extends readonly unknown[]>(
  handler: (res: HttpResponse, ...asked: Asked) => void,
): typeof handler {
  return (res, ...asked) => {
    try {
      handler(res, ...asked);
    } catch (cause) {
      res.close();
      throw cause;
    }
  };
}

/** Returns when everything is handed over, or returns a promise that resolves when nothing more can be sent. */
export function sendReply(
  writer: PieceWriter,
  request: Answered,
  reply: Reply,
  closing: Closing,
  turn: () => Promise<void>,
): Promise<void> | null {
  const { res, aborted } = writer;
  const { body } = reply;
  if (!isPiecewise(body) && !isStream(body)) {
    if (aborted) return null;
    const hasBody = request.sentMethod !== 'HEAD' && reply.status !== 304;
    // If the connection is closed, no further answer follows this one.
    if (hasBody && (closing === 'stays' || isLarge(body))) {
      return sendAtPace(writer, request, reply, body, closing);
    }
    res.cork(() => writeReply(res, request, reply, body, closing));
    return null;
  }
  if (aborted || request.sentMethod === 'HEAD') {
    body.abandon();
    if (!aborted) res.cork(() => writeWithoutBody(res, request, reply, null, closing));
    return null;
  }
  res.cork(() => writeHead(res, request, reply, closingLine(closing)));
  if (isPiecewise(body)) return sendPieces(writer, body, turn);
  // A stream may never end, so nothing waits for it.
  body.begin(writer);
  return null;
}

/** What a body is written to: a response with sent headers. */
export interface PieceWriter {
  readonly res: HttpResponse;
  aborted: boolean;
  /** Called when the client has disconnected. */
  onGone: (() => void) | null;
}

/**
 * Sends each piece after the client has accepted the previous one, and in a slice, no matter how fast this client reads
 * and how many others do. Resolves once nothing more can be sent. If a body
 * cannot be completed, the connection is closed, so that the client does not consider it complete. `Connection: close`
 * is sent only in the headers: if asked to close at the end, uWebSockets.js would write it between the pieces.
 */
async function sendPieces(
  writer: PieceWriter,
  body: PiecewiseBody,
  turn: () => Promise<void>,
): Promise<void> {
  const { res } = writer;
  const { length = null } = body;
  const room = roomIn(writer, body);
  try {
    while (!writer.aborted) {
      const piece = await body.next();
      if (piece === null) {
        if (!writer.aborted && length === null) res.cork(() => res.end());
        return;
      }
      // An empty chunk would end the body.
      if (piece.length > 0 && !writer.aborted) {
        if (length !== null) await sendPart(writer, Buffer.from(piece), length, room);
        else if (!writeChunks(res, piece)) {
          // Copied for this client until it has accepted it.
          const held = { byteLength: Buffer.byteLength(piece) };
          wait(held, res);
          await room();
          leave(held, res);
        }
      }
      await turn();
    }
    body.abandon();
  } catch {
    if (!writer.aborted) res.close();
  }
}

/** Waits until the client has accepted what was sent, or has disconnected. */
function roomIn(writer: PieceWriter, body: PiecewiseBody): () => Promise<void> {
  let wake: (() => void) | null = null;
  function wakeUp(): void {
    wake?.();
    wake = null;
  }
  writer.onGone = () => {
    wakeUp();
    body.gone?.();
  };
  if (!writer.aborted) {
    writer.res.onWritable(() => {
      wakeUp();
      return true;
    });
  }
  return () =>
    new Promise((resolve) => {
      wake = resolve;
      body.waits?.();
    });
}

/** Sends part of a body of known length: what the client does not accept at once is not buffered. */
async function sendPart(
  writer: PieceWriter,
  part: Uint8Array,
  length: number,
  room: () => Promise<void>,
): Promise<void> {
  const { res } = writer;
  const began = res.getWriteOffset();
  for (;;) {
    let isTaken = true;
    const rest = part.subarray(res.getWriteOffset() - began);
    res.cork(() => {
      [isTaken] = res.tryEnd(rest, length);
    });
    if (isTaken) return;
    await room();
    if (writer.aborted) return;
  }
}

const LARGE_BYTES = 64 * 1024;
/** The limit for all bodies and pieces that slow clients of a thread are waiting for; shared bodies count once. */
const MOST_WAITING_BYTES = 128 * 1024 * 1024;

function isLarge(body: string | Uint8Array): boolean {
  return body.length > LARGE_BYTES;
}

type Held = Pick<Uint8Array, 'byteLength'>;

/** The clients waiting for each body or piece, in the order in which these were begun. */
const waiting = new Map<Held, Set<HttpResponse>>();
let waitingBytes = 0;

function wait(bytes: Held, res: HttpResponse): void {
  const others = waiting.get(bytes);
  if (others === undefined) {
    waiting.set(bytes, new Set([res]));
    waitingBytes += bytes.byteLength;
  } else others.add(res);
  for (const [oldest, readers] of waiting) {
    // The newest body is always sent, no matter how long it is.
    if (waitingBytes <= MOST_WAITING_BYTES || oldest === bytes) return;
    for (const reader of readers) {
      leave(oldest, reader);
      reader.close();
    }
  }
}

function leave(bytes: Held, res: HttpResponse): void {
  const readers = waiting.get(bytes);
  if (readers?.delete(res) !== true || readers.size > 0) return;
  waiting.delete(bytes);
  waitingBytes -= bytes.byteLength;
}

/** Returns null if everything is accepted at once, or a promise that resolves when nothing more can be sent. */
function sendAtPace(
  writer: PieceWriter,
  request: Answered,
  reply: Reply,
  body: string | Uint8Array,
  closing: Closing,
): Promise<void> | null {
  const { res } = writer;
  const written = utf8(body);
  const { length } = written;
  let isComplete = false;
  res.cork(() => {
    writeHead(res, request, reply, closingLine(closing));
    [, isComplete] = res.tryEnd(written, length);
  });
  if (isComplete) return null;
  const lasting = typeof written === 'string' ? Buffer.from(written) : lastingBytes(written);
  return new Promise((resolve) => {
    writer.onGone = () => {
      leave(lasting, res);
      resolve();
    };
    res.onWritable((offset) => {
      let isTaken = false;
      res.cork(() => {
        [isTaken, isComplete] = res.tryEnd(lasting.subarray(offset), length);
      });
      if (isComplete) writer.onGone?.();
      return isTaken;
    });
    wait(lasting, res);
  });
}

const copies = new WeakMap<Uint8Array, Uint8Array>();

/** Published bytes may be overwritten after this turn; clients that need them longer share one copy. */
export function lastingBytes(bytes: Uint8Array): Uint8Array {
  if (!(bytes.buffer instanceof SharedArrayBuffer)) return bytes;
  const copy = copies.get(bytes) ?? new Uint8Array(bytes);
  copies.set(bytes, copy);
  return copy;
}

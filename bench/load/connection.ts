/**
 * One keep-alive HTTP/1.1 connection over a raw socket, with just enough parsing to find the end of each
 * answer.
 */

import { connect, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { isJsonObject } from '../../src/base/json/value.ts';
import { parsed } from '../../src/client/received.ts';

export interface Address {
  readonly port: number;
  /** This machine by default. */
  readonly host?: string;
  /** Without it, the connection is not encrypted; `ca` replaces the certificates that the system trusts. */
  readonly tls?: { readonly ca?: string };
}

export interface Connection {
  send(request: Buffer): void;
  close(): void;
  /** Both are set before the first request; the body's bytes are valid only during the call. */
  answered: (status: number, body: Buffer, head: string) => void;
  failed: (cause: Error) => void;
}

const READ_BYTES = 65_536;
const HEAD_END = Buffer.from('\r\n\r\n');
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;
const RETRY_AFTER = /\r\nretry-after: *(\d{1,6})/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n');
const NOTHING = Buffer.alloc(0);

export function openConnection(address: Address): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let unread: Buffer = NOTHING;
    const socket = openSocket(address, take);
    const connection: Connection = {
      send: (request) => socket.write(request),
      close: () => socket.destroy(),
      answered: () => undefined,
      failed: () => undefined,
    };

    function take(arrived: Buffer): void {
      let bytes = unread.length === 0 ? arrived : Buffer.concat([unread, arrived]);
      for (;;) {
        const answer = readAnswer(bytes);
        if (answer === null) break;
        bytes = bytes.subarray(answer.length);
        connection.answered(answer.status, answer.body, answer.head);
      }
      unread = bytes.length === 0 ? NOTHING : Buffer.from(bytes);
    }

    socket.once(address.tls === undefined ? 'connect' : 'secureConnect', () => resolve(connection));
    // A connection may fail more than once, so the listener stays.
    socket.on('error', (cause) => {
      reject(cause);
      connection.failed(cause);
    });
    socket.once('end', () => connection.failed(new Error('The server ended a connection')));
  });
}

function openSocket({ host = '127.0.0.1', port, tls }: Address, take: (bytes: Buffer) => void) {
  if (tls !== undefined) {
    const socket: Socket = connectTls({ host, port, ...tls });
    return socket.setNoDelay().on('data', take);
  }
  // Reading into one buffer instead of a stream saves the generator a fifth of its CPU time.
  const onread: OnReadOpts = {
    buffer: Buffer.allocUnsafe(READ_BYTES),
    callback(length, buffer) {
      take(Buffer.from(buffer.buffer, buffer.byteOffset, length));
      return true;
    },
  };
  return connect({ host, port, noDelay: true, onread });
}

export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: number | null;
}

/** The seconds after which the server wants the request again, if it says so. */
export function retryAfterIn(head: string): number | null {
  const [, seconds] = RETRY_AFTER.exec(head) ?? [];
  return seconds === undefined ? null : Number(seconds);
}

/** A connection with one request at a time. */
export interface Lane {
  ask(request: Buffer): Promise<Answered>;
  close(): void;
}

export async function openLane(address: Address): Promise<Lane> {
  const connection = await openConnection(address);
  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        connection.failed = reject;
        connection.answered = (status, body, head) =>
          resolve({ status, text: body.toString(), retryAfter: retryAfterIn(head) });
        connection.send(request);
      }),
    close: connection.close,
  };
}

interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: Buffer;
  /** Bytes of head and body together. */
  readonly length: number;
}

function readAnswer(bytes: Buffer): RawAnswer | null {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return null;
  const head = bytes.toString('latin1', 0, headEnd);
  const bodyStart = headEnd + HEAD_END.length;
  const length = bodyStart + bodyLength(head, bytes, bodyStart);
  if (bytes.length < length) return null;
  const body = bytes.subarray(bodyStart, length);
  return { status: Number(head.slice(9, 12)), head, body, length };
}

/**
 * The length of the body; if it is sent in chunks, it includes their sizes, and is infinite until the end has arrived.
 */
function bodyLength(head: string, bytes: Buffer, start: number): number {
  if (!CHUNKED.test(head)) return Number(CONTENT_LENGTH.exec(head)?.[1] ?? 0);
  // The line break of the head comes before the last chunk if there is no other.
  const end = bytes.indexOf(LAST_CHUNK, start - 2);
  return end < 0 ? Number.POSITIVE_INFINITY : end + LAST_CHUNK.length - start;
}

/** The code of the error envelope after the status, such as `403 certificate_revoked`; the status if there is none. */
export function errorCode(status: number, body: Buffer): string {
  const answer = parsed(body.toString());
  const error = isJsonObject(answer) ? answer.error : null;
  const code = isJsonObject(error) ? error.code : null;
  return typeof code === 'string' ? `${status} ${code}` : String(status);
}

/** A member of the answer that is text; null if there is none. */
export function textIn(body: Buffer, member: string): string | null {
  const answer = parsed(body.toString());
  const value = isJsonObject(answer) ? answer[member] : null;
  return typeof value === 'string' ? value : null;
}

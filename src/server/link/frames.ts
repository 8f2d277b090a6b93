/**
 * Messages on a connection between two instances: a four-byte length and the message, serialized as by structured
 * cloning between threads, so that no value changes on the way.
 */
import type { TLSSocket } from 'node:tls';
import { DefaultSerializer, deserialize } from 'node:v8';
import { createMessageReader, LENGTH_BYTES } from '../../base/length-prefixed.ts';

/** Enough for a revocation list with a million entries. */
const MOST_BYTES = 256 * 1024 ** 2;
/** How much memory a peer that does not read may occupy. */
const MOST_WAITING_BYTES = 256 * 1024 ** 2;

export interface FrameListener<Received> {
  take(message: Received): void;
  /** Called once, when the connection has ended. */
  closed(problem: string | null): void;
}

export interface Frames<Sent> {
  send(message: Sent): void;
  /** The number of bytes waiting to be sent. */
  waiting(): number;
  /** Calls back once, when fewer bytes are waiting. */
  onceDrained(work: () => void): void;
  end(): void;
}

/** The connection is ended if nothing arrives for `silence` milliseconds. */
export function framesOn<Sent, Received>(
  socket: TLSSocket,
  silence: number,
  listener: FrameListener<Received>,
): Frames<Sent> {
  let problem: string | null = null;

  function fail(reason: string): void {
    problem ??= reason;
    socket.destroy();
  }

  const read = createMessageReader(
    (bytes) => {
      if (bytes > MOST_BYTES) throw new Error('a message is too long');
    },
    (message) => {
      // The previous message may have ended the connection.
      if (!socket.destroyed) listener.take(deserialize(message) as Received);
    },
  );

  socket.setNoDelay(true);
  let hasHeard = true;
  const listening = setInterval(() => {
    if (!hasHeard) fail('nothing has arrived for too long');
    hasHeard = false;
  }, silence).unref();
  socket.on('data', (chunk: Buffer) => {
    hasHeard = true;
    try {
      read(chunk);
    } catch (cause) {
      fail(cause instanceof Error ? cause.message : String(cause));
    }
  });
  socket.on('error', (cause) => fail(cause.message));
  socket.once('close', () => {
    clearInterval(listening);
    listener.closed(problem);
  });

  return {
    send(message) {
      if (socket.destroyed) return;
      socket.write(framed(message));
      if (socket.writableLength > MOST_WAITING_BYTES) fail('the other side reads too slowly');
    },
    waiting: () => socket.writableLength,
    onceDrained: (work) => void socket.once('drain', work),
    end: () => socket.destroy(),
  };
}

const NO_LENGTH = Buffer.alloc(LENGTH_BYTES);

/** Length and message in one buffer, so that they are encrypted and sent together. */
function framed(message: unknown): Buffer {
  const serializer = new DefaultSerializer();
  serializer.writeRawBytes(NO_LENGTH);
  serializer.writeHeader();
  serializer.writeValue(message);
  const frame = serializer.releaseBuffer();
  frame.writeUInt32BE(frame.length - LENGTH_BYTES);
  return frame;
}

/** A viewer of a live page: a WebSocket that reads entire messages. */
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import type { LiveTopic } from '../src/pages/live-content.ts';
import { watchPage } from '../src/protocol/api/pages.ts';

export interface Viewer {
  readonly topic: LiveTopic;
  nextMessage(): Promise<Buffer>;
  close(): void;
}

/** Opens a WebSocket and waits for its first message. */
export async function openViewer(url: string, topic: LiveTopic): Promise<Viewer> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  const frames = new EventEmitter();
  let received = Buffer.alloc(0);
  let isOpen = false;
  socket.on('data', (bytes) => {
    received = Buffer.concat([received, bytes]);
    const head = isOpen ? -1 : received.indexOf(END_OF_HEAD);
    if (head >= 0) received = received.subarray(head + END_OF_HEAD.length);
    isOpen ||= head >= 0;
    while (isOpen) {
      const frame = frameIn(received);
      if (frame === null) return;
      received = received.subarray(frame.end);
      if (frame.payload.toString() !== ALIVE) frames.emit('message', frame.payload);
    }
  });
  async function nextMessage(): Promise<Buffer> {
    const [message] = (await once(frames, 'message')) as [Buffer];
    return message;
  }
  socket.write(
    `GET ${watchPage.path}?topic=${topic} HTTP/1.1\r\nHost: ${hostname}\r\nUpgrade: websocket\r\n` +
      'Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n',
  );
  await nextMessage();
  return { topic, nextMessage, close: () => socket.destroy() };
}

const END_OF_HEAD = '\r\n\r\n';
const ALIVE = '{"alive":true}';

/** The first frame, which a server sends unmasked; null until it is complete. */
function frameIn(bytes: Buffer): { readonly payload: Buffer; readonly end: number } | null {
  if (bytes.length < 10 && bytes.length < 2 + ((bytes[1] ?? 0) & 127)) return null;
  const short = (bytes[1] ?? 0) & 127;
  const start = short === 127 ? 10 : short === 126 ? 4 : 2;
  const length =
    short === 127
      ? Number(bytes.readBigUInt64BE(2))
      : short === 126
        ? bytes.readUInt16BE(2)
        : short;
  const end = start + length;
  return bytes.length < end ? null : { payload: bytes.subarray(start, end), end };
}

/** HTTP as bytes on a socket, for requests that no client library would send. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawConnection {
  readonly socket: Socket;
  /** Everything received so far. */
  received(): string;
  write(bytes: string | Uint8Array): void;
  /** Resolves when the received text contains this one, or the connection has closed. */
  until(text: string | RegExp): Promise<string>;
  /** Resolves with everything received when the other side has closed the connection. */
  closed(): Promise<string>;
  [Symbol.dispose](): void;
}

export async function rawConnection(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  let text = '';
  let isClosed = false;
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.once('close', () => {
    isClosed = true;
  });

  return {
    socket,
    received: () => text,
    write: (bytes) => void socket.write(bytes),
    async until(end) {
      const isThere = () => (typeof end === 'string' ? text.includes(end) : end.test(text));
      while (!isThere() && !isClosed) await new Promise((resolve) => onNews(socket, resolve));
      return text;
    },
    async closed() {
      if (!isClosed) await once(socket, 'close');
      return text;
    },
    [Symbol.dispose]: () => socket.destroy(),
  };
}

function onNews(socket: Socket, wake: (value: unknown) => void): void {
  const once = () => {
    socket.off('data', once);
    socket.off('close', once);
    wake(undefined);
  };
  socket.on('data', once);
  socket.on('close', once);
}

/** The head with which a viewer of the Connectome asks for a WebSocket. */
export const UPGRADE = [
  'GET /live?topic=connectome HTTP/1.1',
  'Host: na',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
  '\r\n',
].join('\r\n');

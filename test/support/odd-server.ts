/** Servers that do with a connection what no honest one does. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/** What the server does once it has received something. */
export type Behavior = (socket: Socket) => void;

export const says =
  (text: string, ends = false): Behavior =>
  (socket) => {
    socket.write(text);
    if (ends) socket.end();
  };

/** Sends the text over and over, as fast as it is read. */
export const floods =
  (first: string, again: string): Behavior =>
  (socket) => {
    const block = again.repeat(1000);
    const more = () => void (socket.destroyed || socket.write(block, more));
    socket.write(first, more);
  };

export interface OddServer extends AsyncDisposable {
  readonly url: string;
  connections(): number;
  isReached(): Promise<void>;
  /** Resolves when no connection is open. */
  allClosed(): Promise<void>;
}

export async function listen(does: Behavior): Promise<OddServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  let reached = () => {};
  const isReached = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.on('data', () => {
      reached();
      does(socket);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`,
    connections: () => connections,
    isReached: () => isReached,
    async allClosed() {
      const ends = [...sockets].map((socket) => new Promise((ended) => socket.on('close', ended)));
      await Promise.all(ends);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

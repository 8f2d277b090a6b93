/**
 * The listening socket. Without free file descriptors uWebSockets.js retries to accept the next connection
 * in a busy loop, so the socket is closed while too few are left and reopened when connections have ended.
 */
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js';

export interface Listener {
  readonly port: number;
  /** The number of open connections has changed. */
  noteConnections(open: number): void;
  close(): void;
}

export interface ListenerOptions {
  readonly app: TemplatedApp;
  readonly uws: Pick<
    typeof import('uWebSockets.js'),
    'us_listen_socket_close' | 'us_socket_local_port'
  >;
  readonly host: string;
  readonly port: number;
  /** Connections that may be open at a time. */
  readonly maxConnections: number;
  onPaused(): void;
}

/** Connections are accepted again when their number has fallen to this share of the maximum. */
const RESUMED_AT = 0.95;

/** Delay before reopening a port is retried, in milliseconds. */
const RETRY_MS = 1000;

export async function openListener(options: ListenerOptions): Promise<Listener> {
  const { app, uws, host, maxConnections, onPaused } = options;
  let socket: us_listen_socket | null = await listenOn(app, host, options.port);
  if (socket === null) throw new Error(`The address ${host}:${options.port} cannot be listened on`);
  const port = uws.us_socket_local_port(socket);
  let isClosed = false;
  let isOpening = false;

  function pause(): void {
    if (socket !== null) uws.us_listen_socket_close(socket);
    socket = null;
  }

  async function resume(): Promise<void> {
    isOpening = true;
    const opened = await listenOn(app, host, port);
    isOpening = false;
    socket = opened;
    if (isClosed) pause();
    else if (opened === null) setTimeout(() => void resume(), RETRY_MS).unref();
  }

  return {
    port,
    noteConnections(open) {
      if (open >= maxConnections && socket !== null) {
        pause();
        onPaused();
      } else if (socket === null && !isClosed && !isOpening && open < maxConnections * RESUMED_AT) {
        void resume();
      }
    },
    close() {
      isClosed = true;
      pause();
    },
  };
}

function listenOn(app: TemplatedApp, host: string, port: number): Promise<us_listen_socket | null> {
  return new Promise((resolve) => {
    app.listen(host, port, (token) => resolve(token === false ? null : token));
  });
}

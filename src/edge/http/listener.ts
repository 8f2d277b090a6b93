/**
 * The listening socket. Without free file descriptors uWebSockets.js retries to accept the next connection
 * in a busy loop, so the socket is closed while too few are left and reopened when connections have ended.
 */
import type { HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js';
import type { TlsFiles } from '../../base/tls/pair.ts';
import { addressOf, type Peers } from '../request/request-head.ts';

interface ListenerOptions {
  readonly app: TemplatedApp;
  readonly uws: Pick<
    typeof import('uWebSockets.js'),
    'us_listen_socket_close' | 'us_socket_local_port'
  >;
  readonly host: string;
  readonly port: number;
  /** The most open connections. */
  readonly maxConnections: number;
  onPaused(): void;
}

/** Connections are accepted again once their number falls to this fraction of the maximum. */
const RESUMED_AT = 0.95;

/** Delay before reopening a port is retried, in milliseconds. */
const RETRY_MS = 1000;

export type Listener = ReturnType<typeof openListener>;

export function openListener(options: ListenerOptions) {
  const { uws, host, maxConnections, onPaused } = options;
  let { app } = options;
  let socket: us_listen_socket | null = listenOn(app, host, options.port);
  if (socket === null) throw unavailable(host, options.port);
  const port = uws.us_socket_local_port(socket);
  /** The socket that still accepts for the replaced app. */
  let leaving: us_listen_socket | null = null;
  let isClosed = false;
  let retry: NodeJS.Timeout | null = null;

  function pause(): void {
    if (socket !== null) uws.us_listen_socket_close(socket);
    socket = null;
  }

  function closeLeaving(): void {
    if (leaving !== null) uws.us_listen_socket_close(leaving);
    leaving = null;
  }

  function resume(): void {
    retry = null;
    if (isClosed) return;
    socket = listenOn(app, host, port);
    if (socket === null) retry = setTimeout(resume, RETRY_MS).unref();
  }

  return {
    port,
    /** Call when the number of open connections changes. */
    noteConnections(open: number): void {
      if (open >= maxConnections && socket !== null) {
        pause();
        onPaused();
      } else if (socket === null && retry === null && open < maxConnections * RESUMED_AT) {
        resume();
      }
    },
    /**
     * Moves new connections to another app; resolves when the previous app gets no more. Rejects without changing
     * anything if the new app cannot listen.
     */
    async moveTo(next: TemplatedApp): Promise<void> {
      const before = socket;
      const opened = before === null ? null : listenOn(next, host, port);
      if (before !== null && opened === null) throw unavailable(host, port);
      app = next;
      socket = opened;
      // Closing a socket resets the connections waiting to be accepted, so it is closed just after they were accepted.
      leaving = before;
      await turnOfLoop();
      closeLeaving();
    },
    close(): void {
      isClosed = true;
      closeLeaving();
      pause();
    },
  };
}

/** uWebSockets.js calls back before `listen` returns. */
function listenOn(app: TemplatedApp, host: string, port: number): us_listen_socket | null {
  let socket: us_listen_socket | null = null;
  app.listen(host, port, (token) => {
    socket = token === false ? null : token;
  });
  return socket;
}

/** Resolves when everything waiting on all sockets has been read. */
async function turnOfLoop(): Promise<void> {
  await new Promise(setImmediate);
  await new Promise(setImmediate);
}

function unavailable(host: string, port: number): Error {
  return new Error(`Cannot listen on ${host}:${port}`);
}

/**
 * The uWebSockets.js apps of one edge. The newest one accepts new connections. With TLS, there is one app per
 * certificate and key pair, and earlier apps serve their remaining connections.
 */

type Uws = typeof import('uWebSockets.js');

interface AppsOptions {
  readonly uws: Uws;
  readonly host: string;
  readonly port: number;
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null;
  /** The most open connections of all apps together. */
  readonly maxConnections: number;
  readonly peers: Peers;
  /** Adds the routes to an app. Call `ended` for each connection that was upgraded from HTTP and has ended. */
  serve(app: TemplatedApp, ended: () => void): void;
  onPaused(): void;
}

export function openApps(options: AppsOptions) {
  const { uws, host, port, maxConnections, peers, onPaused } = options;
  /** The number of connections of each app. */
  const open = new Map<TemplatedApp, number>();
  let connections = 0;
  let listener: Listener | null = null;
  /** The app whose listening socket is still open after a newer one has replaced it. */
  let leaving: TemplatedApp | null = null;
  let newest = openApp(options.tls);

  function openApp(tls: TlsFiles | null): TemplatedApp {
    const app = appFor(uws, tls);
    open.set(app, 0);
    app.filter((res, change) => noteConnection(app, res, Number(change)));
    options.serve(app, () => count(app, -1));
    return app;
  }

  function noteConnection(app: TemplatedApp, res: HttpResponse, change: number): void {
    if (change > 0) peers.opened(addressOf(res));
    else peers.closed();
    count(app, change);
  }

  function count(app: TemplatedApp, change: number): void {
    open.set(app, (open.get(app) ?? 0) + change);
    connections += change;
    listener?.noteConnections(connections);
    // The library is still ending this connection.
    if (app !== newest && open.get(app) === 0) setImmediate(() => retire(app));
  }

  function retire(app: TemplatedApp): void {
    if (app === newest || app === leaving || open.get(app) !== 0) return;
    open.delete(app);
    app.close();
  }

  listener = openListener({ app: newest, uws, host, port, maxConnections, onPaused });
  return {
    port: listener.port,
    /** Resolves once new connections use this pair. Rejects without changing anything if it cannot be used. */
    async useTls(files: TlsFiles): Promise<void> {
      const [before, next] = [newest, openApp(files)];
      newest = next;
      leaving = before;
      try {
        await listener?.moveTo(next);
      } catch (cause) {
        newest = before;
        throw cause;
      } finally {
        leaving = null;
        retire(before);
        retire(next);
      }
    },
    /** Ends all connections. */
    close(): void {
      listener?.close();
      const apps = [...open.keys()];
      open.clear();
      for (const app of apps) app.close();
    },
  };
}

function appFor(uws: Uws, tls: TlsFiles | null): TemplatedApp {
  if (tls === null) return uws.App();
  return uws.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile });
}

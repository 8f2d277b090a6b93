/**
 * The uWebSockets.js apps of one edge. The newest one accepts new connections. With TLS, there is one app per
 * certificate and key pair, and earlier apps serve their remaining connections.
 */
import type { HttpResponse, TemplatedApp } from 'uWebSockets.js';
import type { TlsFiles } from '../../base/tls/pair.ts';
import { addressOf, type Peers } from '../request/request-head.ts';
import { type Listener, openListener } from './listener.ts';

type Uws = typeof import('uWebSockets.js');

export interface AppsOptions {
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
    if (app === newest || !open.has(app) || open.get(app) !== 0) return;
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
      try {
        await listener?.moveTo(next);
        retire(before);
      } catch (cause) {
        newest = before;
        retire(next);
        throw cause;
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

/** The server of the console: on the loopback addresses of this machine, for one browser. */
import { timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Runtime } from '../base/runtime.ts';
import { asset } from '../pages/assets.ts';
import type { Connection } from './context.ts';
import { createRooms, formIn, page, plain, type Reply, seeOther } from './routes.ts';
import { loginPage } from './shell.ts';

interface ConsoleSettings {
  readonly connection: Connection;
  readonly isReadOnly: boolean;
  /** 0 for any free port. */
  readonly port: number;
  readonly runtime: Runtime;
}

export type RunningConsole = Awaited<ReturnType<typeof startConsole>>;

const STYLE = asset('console-style.css');
const SCRIPT = asset('console.js');
const IDLE_MS = 8 * 60 * 60 * 1000;
const MOST_CONNECTIONS = 64;
const HEAD_MS = 10_000;
const REQUEST_MS = 60_000;
const MOST_HEAD_BYTES = 32 * 1024;
const ADDRESSES = ['127.0.0.1', '::1'] as const;
/** A port that is free at one address can be in use at the other. */
const MOST_ATTEMPTS = 5;

/** Nothing inline, and nothing from elsewhere. */
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Without a referrer, forms would be sent with the origin "null".
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

export async function startConsole(settings: ConsoleSettings) {
  const { connection, isReadOnly, runtime } = settings;
  const admission = createAdmission(runtime);
  const rooms = createRooms(connection, isReadOnly, runtime);
  const connections = createConnections();
  let lastUsed = runtime.now();
  let port = 0;

  async function replyTo(request: IncomingMessage, signal: AbortSignal): Promise<Reply> {
    const problem = foreignRequest(request, port);
    if (problem !== null) return plain(403, problem);
    const url = new URL(request.url ?? '/', 'http://console');
    const name = url.pathname.split('/').pop();
    if (name === 'style.css') return { status: 200, type: 'text/css; charset=utf-8', body: STYLE };
    if (name === 'console.js')
      return { status: 200, type: 'text/javascript; charset=utf-8', body: SCRIPT };
    if (request.method === 'POST' && url.pathname === '/session') return session(request);
    if (url.pathname === '/' && request.method === 'GET') return page(200, loginPage(null));
    if (!url.pathname.startsWith(admission.root) || !admission.hasCookie(request)) {
      return page(403, loginPage('This browser has not been admitted.'));
    }
    connections.admit(request.socket);
    // What a page fetches by itself is no use of it.
    if (request.headers['sec-fetch-dest'] !== 'empty') lastUsed = runtime.now();
    const path = `/${url.pathname.slice(admission.root.length)}`;
    return rooms({ request, path, query: url.searchParams, signal });
  }

  async function session(request: IncomingMessage): Promise<Reply> {
    const form = await formIn(request);
    const cookie = admission.exchange(form?.get('token') ?? '');
    if (cookie !== null) return seeOther(`${admission.root}overview`, { 'set-cookie': cookie });
    return page(
      403,
      loginPage('The token is wrong or was used before. Stop mesh-na console and start it again.'),
    );
  }

  const listening = await listen(settings.port, connections.take, (request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    replyTo(request, gone.signal)
      .catch(async (error: unknown) => plain(500, await connection.problemOf(error)))
      .then((reply) => send(request, response, reply))
      .catch(() => response.destroy());
  });
  port = listening.port;

  async function stop(): Promise<void> {
    await Promise.all(listening.servers.map(closed));
  }

  return {
    port,
    /** With the token, which works once. */
    url: `http://127.0.0.1:${port}/#${admission.token}`,
    stop,
    /** Stops the console if nobody has used it for eight hours; returns whether it did. */
    async stopIfIdle(): Promise<boolean> {
      if (runtime.now() - lastUsed < IDLE_MS) return false;
      await stop();
      return true;
    },
  };
}

async function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, type, body, headers }: Reply,
): Promise<void> {
  // What was not read of a body that is too large.
  if (!request.complete) response.shouldKeepAlive = false;
  response.writeHead(status, { ...HEADERS, 'content-type': type, ...headers });
  if (typeof body === 'string' || request.method === 'HEAD') {
    response.end(request.method === 'HEAD' ? undefined : body);
    return;
  }
  for await (const piece of body) {
    if (response.destroyed) return;
    if (!response.write(piece)) await drainedOrGone(response);
  }
  response.end();
}

async function drainedOrGone(response: ServerResponse): Promise<void> {
  const waiting = new AbortController();
  const { signal } = waiting;
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  // A long file waits many times, and would add a listener each time.
  waiting.abort();
}

/** Keeps a bounded number of connections: beyond it, the oldest that has never shown the cookie makes room. */
function createConnections() {
  const strangers = new Set<Socket>();
  let count = 0;
  return {
    take(socket: Socket): void {
      count += 1;
      strangers.add(socket);
      socket.once('close', () => {
        count -= 1;
        strangers.delete(socket);
      });
      if (count <= MOST_CONNECTIONS) return;
      const [oldest] = strangers;
      oldest?.destroy();
    },
    admit(socket: Socket): void {
      strangers.delete(socket);
    },
  };
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Listens at both loopback addresses with one port; at one of them if this machine has no other. */
async function listen(wanted: number, take: (socket: Socket) => void, listener: Listener) {
  for (let attempt = 1; ; attempt += 1) {
    const servers: Server[] = [];
    let port = wanted;
    try {
      for (const host of ADDRESSES) {
        const server = await listenAt(host, port, listener);
        if (server === null) continue;
        server.on('connection', take);
        servers.push(server);
        ({ port } = server.address() as AddressInfo);
      }
      return { servers, port };
    } catch (error) {
      await Promise.all(servers.map(closed));
      if (wanted !== 0 || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}

/** Null if the machine does not have the address. */
async function listenAt(host: string, port: number, listener: Listener): Promise<Server | null> {
  const server = createServer(
    { headersTimeout: HEAD_MS, requestTimeout: REQUEST_MS, maxHeaderSize: MOST_HEAD_BYTES },
    listener,
  );
  server.listen({ host, port, ipv6Only: true });
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (host === '::1' && (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT')) return null;
    throw error;
  }
}

function closed(server: Server): Promise<unknown> {
  const end = once(server, 'close');
  server.close();
  server.closeAllConnections();
  return end;
}

const COOKIE = 'mesh-console';
const SECRET_BYTES = 32;
const PATH_BYTES = 12;

/**
 * Who may use the console. Other users of the machine and pages of other sites can reach its port, so it answers only a
 * browser that has exchanged the token, which works once, for a cookie. Browsers send a cookie to every port of a host,
 * so the cookie is limited to a path that nobody else knows.
 */
function createAdmission(runtime: Runtime) {
  const secret = () => runtime.randomBytes(SECRET_BYTES).toString('base64url');
  const token = secret();
  const session = secret();
  const root = `/${runtime.randomBytes(PATH_BYTES).toString('hex')}/`;
  let isUsed = false;
  return {
    /** What the first browser exchanges for the cookie. */
    token,
    /** The path below which all pages are, with slashes at both ends. */
    root,
    /** The value of `Set-Cookie`; null for a token that is wrong or was used. */
    exchange(given: string): string | null {
      if (isUsed || !isSame(given, token)) return null;
      isUsed = true;
      return `${COOKIE}=${session}; Path=${root}; HttpOnly; SameSite=Strict`;
    },
    hasCookie: ({ headers }: IncomingMessage): boolean =>
      cookiesOf(headers.cookie).some((value) => isSame(value, session)),
  };
}

/** Why a request is refused before anything else is looked at; null if it is not. */
function foreignRequest(request: IncomingMessage, port: number): string | null {
  const { host = '', origin } = request.headers;
  // Another name would be one that somebody has pointed at this machine.
  if (host !== `127.0.0.1:${port}` && host !== `[::1]:${port}`) {
    return `This console answers only at its own address, http://127.0.0.1:${port}/.`;
  }
  const isChange = request.method !== 'GET' && request.method !== 'HEAD';
  if (origin === undefined ? isChange : origin !== `http://${host}`) {
    return 'This console answers only its own pages.';
  }
  return null;
}

function cookiesOf(header = ''): string[] {
  return header
    .split(/; */)
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1));
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

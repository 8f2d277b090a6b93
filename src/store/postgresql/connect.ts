/** Connections to the one server of a list that can be written to. */
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, ClientConfig } from 'pg';
import { DamagedState } from '../rows.ts';
import type { ServerAddress, StoreAddress } from './address.ts';

/** Loaded on first use: a service on the embedded store does not need it. */
const require = createRequire(import.meta.url);

/** The longest a server may take to accept a connection. */
const CONNECT_MS = 5000;
/** How long to wait for the first server before trying all others as well. */
const HEAD_START_MS = 200;
const OLDEST_SERVER = 130_000;

/**
 * Settings on which the commits of this store depend, regardless of the defaults of the database or the user. A commit
 * may wait a long time for a standby, and is never canceled before its outcome is known. JIT is off because a table
 * scan without an index, as on the lease table, counts as so expensive here that the database would compile the plan
 * each time, which takes a thousand times as long as all of these statements. The server asks after a silent client, so
 * that the locks of a machine that has vanished are free within half a minute, not after two hours.
 */
const session = (lockMs: number) => `
  set default_transaction_isolation = 'read committed';
  set statement_timeout = 0;
  set lock_timeout = ${lockMs};
  set idle_in_transaction_session_timeout = 0;
  set tcp_keepalives_idle = 10;
  set tcp_keepalives_interval = 5;
  set tcp_keepalives_count = 3;
  set client_min_messages = 'warning';
  set enable_seqscan = off;
  set jit = off;
  select set_config('synchronous_commit', 'on', false)
    where current_setting('synchronous_commit') = 'off';
`;

const SITUATION = `
  select pg_is_in_recovery() as standby,
    current_setting('transaction_read_only') = 'on' as read_only,
    current_setting('server_version_num')::int as version,
    current_setting('server_version') as version_text,
    current_setting('fsync') = 'on' as fsync
`;

interface Situation {
  readonly standby: boolean;
  readonly read_only: boolean;
  readonly version: number;
  readonly version_text: string;
  readonly fsync: boolean;
}

/** The client's message if an answer does not arrive within the connection's timeout. */
const TIMEOUT = 'Query read timeout';
/** The database's error code if a lock was not acquired within `lockMs`. */
const LOCK_TIMEOUT = '55P03';

/** Whether the database rejected the statement itself, so that the connection can still be used. */
export function isOfStatement(cause: unknown): boolean {
  return (cause as { severity?: string }).severity === 'ERROR';
}

/** Whether the database may just be slow. */
export function isTimeout(cause: unknown): cause is Error {
  if (!(cause instanceof Error)) return false;
  if (cause instanceof UnusableServer) return cause.isSlow;
  return cause.message === TIMEOUT || ('code' in cause && cause.code === LOCK_TIMEOUT);
}

/** The longest possible timer, to turn off the client's own timeout for statements that `answerWithin` limits. */
export const NO_TIMEOUT = 2 ** 31 - 1;

/**
 * Returns the answer to a statement, or rejects with an error that `isTimeout` recognizes if there is none within this
 * many milliseconds. An answer that arrived while this process was suspended still counts. The client's own timeout
 * would discard it, because overdue timers run before incoming data is read.
 */
export async function answerWithin<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const missed = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => setImmediate(() => reject(new Error(TIMEOUT))), milliseconds);
  });
  try {
    return await Promise.race([answer, missed]);
  } finally {
    clearTimeout(timer);
  }
}

/** A server that cannot be used; the message is a sentence for the operator. */
export class UnusableServer extends Error {
  /** Whether the server only failed to answer in time. */
  readonly isSlow: boolean;

  constructor(message: string, isSlow = false) {
    super(message);
    this.isSlow = isSlow;
  }
}

export interface Connection {
  readonly client: Client;
  /** Host, port and database. */
  readonly shown: string;
}

export interface ConnectOptions {
  /** The timeout of a statement in milliseconds; no timeout if absent. */
  readonly timeout?: number;
  /**
   * How long a server may take to accept the connection, in milliseconds, at most 5,000; defaults to a third of
   * `timeout`.
   */
  readonly connectMs?: number;
  /** How long a statement may wait for a lock, in milliseconds; no limit if absent. */
  readonly lockMs?: number;
  /** The name of the session in the database. */
  readonly name?: string;
}

/** Runs the work on a connection to the primary, and then closes the connection. */
export async function onPrimary<T>(
  address: StoreAddress,
  work: (client: Client, shown: string) => Promise<T>,
): Promise<T> {
  const { client, shown } = await connectToPrimary(address);
  try {
    return await work(client, shown);
  } finally {
    await disconnect(client);
  }
}

/** The last connected server of each list, which is probably still the primary. */
const connectedLast = new WeakMap<StoreAddress, ServerAddress>();

/**
 * Connects to the server in the list that is not a standby; throws a one-sentence error if there is none. Servers are
 * tried in parallel, so an unresponsive one costs only the head start.
 */
export async function connectToPrimary(
  address: StoreAddress,
  options: ConnectOptions = {},
): Promise<Connection> {
  const found = new AbortController();
  const first = connectedLast.get(address) ?? address[0];

  async function attempt(server: ServerAddress): Promise<Connection> {
    const connection = await connectTo(server, options, found.signal);
    found.abort();
    connectedLast.set(address, server);
    return connection;
  }

  async function attemptLater(server: ServerAddress): Promise<Connection> {
    await Promise.race([firstAttempt.catch(() => undefined), headStart]);
    found.signal.throwIfAborted();
    return attempt(server);
  }

  const headStart = delay(HEAD_START_MS, undefined, found).catch(() => undefined);
  const firstAttempt = first ? attempt(first) : Promise.reject(new UnusableServer('No server'));
  const attempts = address.map((server) =>
    server === first ? firstAttempt : attemptLater(server),
  );
  try {
    return await Promise.any(attempts);
  } catch (cause) {
    const problems = (cause as AggregateError).errors as UnusableServer[];
    const isSlow = problems.some((problem) => problem.isSlow);
    throw new UnusableServer(problems.map(({ message }) => message).join('; '), isSlow);
  } finally {
    found.abort();
  }
}

/** Gives up once another server is found. */
async function connectTo(
  server: ServerAddress,
  options: ConnectOptions,
  found: AbortSignal,
): Promise<Connection> {
  const { timeout = Number.POSITIVE_INFINITY, lockMs = 0 } = options;
  const connectMs = Math.min(CONNECT_MS, options.connectMs ?? timeout / 3);
  const { shown } = server;
  const client = newClient(server.config, options);
  const giveUp = () => destroy(client);
  found.addEventListener('abort', giveUp);
  try {
    await answerWithin(connectMs, prepare(client, shown, lockMs));
    found.throwIfAborted();
    return { client, shown };
  } catch (cause) {
    if (cause instanceof UnusableServer) await disconnect(client);
    else giveUp();
    throw cause instanceof UnusableServer ? cause : explained(server, cause, connectMs);
  } finally {
    found.removeEventListener('abort', giveUp);
  }
}

async function prepare(client: Client, shown: string, lockMs: number): Promise<void> {
  await client.connect();
  const { rows } = await client.query<Situation>(SITUATION);
  assertUsable(shown, rows[0]);
  await client.query(session(lockMs));
}

/** How long a server may take to close a connection, or to answer the last statement on one. */
export const FAREWELL_MS = 1000;

/** Closes the connection without waiting for an unresponsive server. */
export async function disconnect(client: Client): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FAREWELL_MS);
  });
  await Promise.race([client.end().catch(() => undefined), patience]);
  clearTimeout(timer);
  destroy(client);
}

/**
 * Sockets by client. The client itself would keep its socket until an unresponsive server closes the connection.
 */
const sockets = new WeakMap<Client, Socket>();

function destroy(client: Client): void {
  sockets.get(client)?.destroy();
}

function newClient(config: ClientConfig, { timeout, name = SESSION_NAME }: ConnectOptions): Client {
  const { Client }: typeof import('pg') = require('pg');
  const socket = new Socket();
  const client = new Client({
    ...config,
    password: config.password || passwordOf(config),
    application_name: name,
    keepAlive: true,
    stream: () => socket,
    ...(timeout === undefined ? {} : { query_timeout: timeout }),
  });
  sockets.set(client, socket);
  // Running statements are rejected anyway; without a listener, the process would end.
  client.on('error', () => undefined);
  return client;
}

/** Reads the password from the same file as other PostgreSQL programs. */
function passwordOf({ host = '', port = 0, database = '', user = '' }: ClientConfig) {
  const pgpass: typeof import('pgpass') = require('pgpass');
  return () =>
    new Promise<string>((resolve) => {
      pgpass({ host, port, database, user }, (found) => resolve(found ?? ''));
    });
}

function assertUsable(shown: string, situation: Situation | undefined): void {
  if (situation === undefined) throw new UnusableServer(`The database at ${shown} does not answer`);
  const { standby, read_only, version, version_text, fsync } = situation;
  if (version < OLDEST_SERVER) {
    throw new UnusableServer(
      `The database at ${shown} is PostgreSQL ${version_text}; version 13 is the oldest that works`,
    );
  }
  if (standby)
    throw new UnusableServer(`The database at ${shown} is a standby, which cannot be written to`);
  if (read_only) throw new UnusableServer(`The database at ${shown} is read-only`);
  if (!fsync) {
    throw new UnusableServer(
      `The database at ${shown} runs with fsync=off: acknowledged changes may be lost if its machine crashes; turn fsync on`,
    );
  }
}

/** The client's message if the server requires a password and none was found. */
const NO_PASSWORD = /password must be/;
const PASSWORD_PLACES = 'the URL, PGPASSWORD or the file that PGPASSFILE names';

const REFUSALS: { readonly [code: string]: string } = {
  '28P01':
    'the password is wrong; it is taken from the URL, PGPASSWORD or the file that PGPASSFILE names',
  '28000': 'its pg_hba.conf has no rule that lets this user in',
  '3D000': 'it does not exist; createdb makes it',
  '53300': 'it has no free connection',
  '57P03': 'it is starting up or shutting down',
};

function explained(
  { shown, config }: ServerAddress,
  cause: unknown,
  connectMs: number,
): UnusableServer {
  if (isTimeout(cause)) {
    const time = `${(connectMs / 1000).toFixed(1)} s`;
    return new UnusableServer(
      `The database at ${shown} cannot be reached (no answer within ${time})`,
      true,
    );
  }
  const { code = '', message = '' } = cause as { code?: string; message?: string };
  const refusal = NO_PASSWORD.test(message)
    ? `it requires a password; set it with ${PASSWORD_PLACES}`
    : REFUSALS[code];
  if (refusal !== undefined) {
    return new UnusableServer(`The database at ${shown} refuses user ${config.user}: ${refusal}`);
  }
  return new UnusableServer(`The database at ${shown} cannot be reached (${code || message})`);
}

export const SESSION_NAME = 'mesh-na';

/** The session in which an instance follows the state. */
export const STANDBY_SESSION = `${SESSION_NAME} standby`;

/**
 * SQLSTATE class XX for inconsistent pages and rows, `io_error` for an unreadable disk, `undefined_file` for a missing
 * file.
 */
const OF_THE_FILES = /^(?:XX...|58030|58P01)$/;

/** The server's message; null if the error does not concern the files of the table. */
export function unreadableBecause(cause: unknown): string | null {
  const { code = '', message = '' } = cause as { code?: string; message?: string };
  return OF_THE_FILES.test(code) ? message : null;
}

/** The error to throw if a table could not be read. */
export function readingProblem(table: string, cause: unknown): unknown {
  const problem = unreadableBecause(cause);
  return problem === null ? cause : new DamagedState(`table ${table} cannot be read (${problem})`);
}

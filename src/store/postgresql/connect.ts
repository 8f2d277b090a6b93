/** Connections to the one server of a list that can be written to. */
import { createRequire } from 'node:module';
import type { Client, ClientConfig } from 'pg';
import type { ServerAddress, StoreAddress } from './address.ts';
import { SESSION_NAME } from './session-name.ts';

/** Loaded on first use: a service on the embedded store does without. */
const require = createRequire(import.meta.url);

/** How long one server may take to accept a connection. */
const CONNECT_MS = 5000;
const OLDEST_SERVER = 130_000;

/**
 * What the commits of this store rest on, whatever the database or the user have as default. A commit may wait
 * for a standby for long, and is never ended before its outcome is known. Where a table has to be read without an
 * index, as that of the lease, the plan counts as so expensive that the database would compile it each time, which
 * takes a thousand times as long as all of these statements do.
 */
const SESSION = `
  set default_transaction_isolation = 'read committed';
  set statement_timeout = 0;
  set lock_timeout = 0;
  set idle_in_transaction_session_timeout = 0;
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

/** What the client says of an answer that has not come within the time of its connection. */
const TIMEOUT = 'Query read timeout';

export function isTimeout(cause: unknown): cause is Error {
  return cause instanceof Error && cause.message === TIMEOUT;
}

/** The longest that a timer lasts: the timeout of a statement whose time is counted by `answerWithin`. */
export const NO_TIMEOUT = 2 ** 31 - 1;

/**
 * The answer to a statement, or what `isTimeout` tells when none has come within so many milliseconds. An answer that has
 * come while this process stood still counts: the timer of the client would give it up, because timers that are overdue
 * are called before what has arrived is read.
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
export class UnusableServer extends Error {}

export interface Connection {
  readonly client: Client;
  /** Host, port and database. */
  readonly shown: string;
}

/**
 * Connects to the first server of the list that is no standby; throws one clear sentence when there is none.
 * `timeout` ends a statement whose answer does not come, in milliseconds; null waits for any answer. `name` is what the
 * database calls the session.
 */
export async function connectToPrimary(
  address: StoreAddress,
  timeout: number | null = null,
  name = SESSION_NAME,
): Promise<Connection> {
  const problems: string[] = [];
  for (const server of address) {
    try {
      return await connectTo(server, { timeout, name });
    } catch (cause) {
      if (!(cause instanceof UnusableServer)) throw cause;
      problems.push(cause.message);
    }
  }
  throw new UnusableServer(problems.join('; '));
}

interface SessionOptions {
  readonly timeout: number | null;
  readonly name: string;
}

async function connectTo(server: ServerAddress, options: SessionOptions): Promise<Connection> {
  const { shown } = server;
  const client = newClient(server.config, options);
  // What was under way is rejected as well; without a listener, the process would end.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<Situation>(SITUATION);
    assertUsable(shown, rows[0]);
    await client.query(SESSION);
    return { client, shown };
  } catch (cause) {
    await disconnect(client);
    throw cause instanceof UnusableServer ? cause : explained(server, cause);
  }
}

/** How long a server may take to say farewell. */
const FAREWELL_MS = 1000;

/** Ends the connection; does not wait for a server that does not answer any more. */
export async function disconnect(client: Client): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FAREWELL_MS);
  });
  await Promise.race([client.end().catch(() => undefined), patience]);
  clearTimeout(timer);
}

function newClient(config: ClientConfig, { timeout, name }: SessionOptions): Client {
  const { Client }: typeof import('pg') = require('pg');
  return new Client({
    ...config,
    password: config.password || passwordOf(config),
    application_name: name,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    ...(timeout === null ? {} : { query_timeout: timeout }),
  });
}

/** The file of passwords, which is that of every other program of PostgreSQL. */
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
      `The database at ${shown} runs with fsync=off: what it has acknowledged may be lost with its machine; switch fsync on`,
    );
  }
}

/** What the client says when a password is asked for and none was found. */
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

function explained({ shown, config }: ServerAddress, cause: unknown): UnusableServer {
  const { code = '', message = '' } = cause as { code?: string; message?: string };
  const refusal = NO_PASSWORD.test(message)
    ? `it asks for a password; give it by ${PASSWORD_PLACES}`
    : REFUSALS[code];
  if (refusal !== undefined) {
    return new UnusableServer(`The database at ${shown} refuses user ${config.user}: ${refusal}`);
  }
  return new UnusableServer(`The database at ${shown} cannot be reached (${code || message})`);
}

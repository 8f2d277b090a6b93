/** A real PostgreSQL for tests: a separate cluster in a temporary folder, on a free port. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import './isolation.ts';
import { findPostgresql } from './programs.ts';
import { scratchFolder } from './scratch.ts';

export interface ClusterOptions {
  /** Settings of the server, such as `fsync`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Whether it trusts all users without a password, which costs both sides more than the connection itself. */
  readonly isTrusting?: boolean;
  /** The folder for its files; by default, one in memory if possible. */
  readonly below?: string;
  /** A command through which the server is started, such as one that enters a namespace. */
  readonly behind?: readonly string[];
  /** By default, a free port. */
  readonly port?: number;
  /** Whether the server ends with the process that started it, which then does not wait for it. */
  readonly isLeftToEnd?: boolean;
  /** The cluster of which this one is a standby, and from which it gets its state. */
  readonly standbyOf?: TestCluster;
}

/** Where a cluster listens. */
export interface ClusterPlace {
  readonly port: number;
  /** The folder of its Unix socket, where no password is required. */
  readonly socketFolder: string;
}

export interface Databases {
  /** The address of a database, with user and password. */
  url(database: string): string;
  /** Creates an empty database and returns its address. */
  createDatabase(definition?: string): Promise<string>;
  /** Runs one statement and returns its rows. */
  query(database: string, statement: string): Promise<Record<string, unknown>[]>;
}

export interface TestCluster extends ClusterPlace, Databases, AsyncDisposable {
  readonly password: string;
  /** Kills the server, ends it immediately like a power failure, or stops it in an orderly way. */
  stop(how: 'SIGKILL' | 'SIGQUIT' | 'SIGINT'): Promise<void>;
  /** Starts the server again on the same port. */
  start(settings?: Readonly<Record<string, string>>): Promise<void>;
  /** Sets whether the server is a standby from its next start on. */
  setStandby(isStandby: boolean): void;
  /** Suspends the server with all of its sessions, like a machine that hangs, until it is stopped. */
  freeze(): void;
}

const PASSWORD = 'a password, with @ and /';
/** In memory if possible, because the speed of a disk does not matter to tests, only what is written. */
const FOLDERS = process.env.TMPDIR === undefined && existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
/** Little memory, few processes, and no background work. */
const SMALL = {
  shared_buffers: '16MB',
  max_connections: '60',
  autovacuum: 'off',
  max_wal_senders: '4',
  // A standby looks for its primary this often.
  wal_retrieve_retry_interval: '200ms',
  unix_socket_permissions: '0777',
  // Files in its folder, which are removed with it even after a kill.
  dynamic_shared_memory_type: 'mmap',
};

/** SQL for a database whose clock can be set with `settingClock`, in sessions that begin after this. */
export const SETTABLE_CLOCK = `
  create schema settable;
  create table settable.clock as select interval '0' as ahead;
  create function settable.clock_timestamp() returns timestamptz language sql volatile as
    'select pg_catalog.clock_timestamp() + ahead from settable.clock';
  do $$ begin
    execute format('alter database %I set search_path = settable, pg_catalog', current_database());
  end $$;
`;

/** SQL that sets the clock this many seconds ahead of the system's. */
export function settingClock(seconds: number): string {
  return `update settable.clock set ahead = make_interval(secs => ${seconds})`;
}

export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const programs = findPostgresql();
  if (programs === null) throw new Error('There is no PostgreSQL on this machine');
  let server: ChildProcess | null = null;
  let isFrozen = false;
  const scratch = scratchFolder('mesh-na-pg-', {
    below: options.below ?? FOLDERS,
    atExit: () => void server?.kill('SIGKILL'),
  });
  const folder = scratch.path;
  const data = join(folder, 'data');
  if (options.standbyOf === undefined) makeCluster(programs, folder, data, options);
  else copyCluster(programs, folder, data, options.standbyOf);
  const port = options.port ?? (await freePort());

  async function start(settings: ClusterOptions['settings'] = {}): Promise<void> {
    const all = {
      ...SMALL,
      ...options.settings,
      ...settings,
      port: String(port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: folder,
    };
    const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const [command = '', ...args] = [
      ...(options.behind ?? []),
      ...asServer([join(programs ?? '', 'postgres'), '-D', data, ...flags]),
    ];
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    server = child;
    await isReady(child);
    if (options.isLeftToEnd) leave(child);
  }

  async function stop(how: 'SIGKILL' | 'SIGQUIT' | 'SIGINT'): Promise<void> {
    if (server === null) return;
    const exited = once(server, 'exit');
    if (isFrozen) signalChildren(server, 'SIGCONT');
    isFrozen = false;
    server.kill('SIGCONT');
    server.kill(how);
    server = null;
    await exited;
  }

  await start();
  return {
    port,
    socketFolder: folder,
    password: PASSWORD,
    ...databasesAt({ port, socketFolder: folder }),
    stop,
    start,
    setStandby(isStandby) {
      const mark = join(data, 'standby.signal');
      if (isStandby) writeFileSync(mark, '');
      else rmSync(mark);
    },
    freeze() {
      isFrozen = true;
      server?.kill('SIGSTOP');
      if (server !== null) signalChildren(server, 'SIGSTOP');
    },
    async [Symbol.asyncDispose]() {
      await stop('SIGQUIT');
      scratch.remove();
    },
  };
}

/** The databases of a running cluster, regardless of which process started it. */
export function databasesAt({ port, socketFolder }: ClusterPlace): Databases {
  function url(database: string): string {
    return `postgresql://postgres:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/${database}`;
  }

  async function query(database: string, statement: string) {
    const client = new pg.Client({ host: socketFolder, port, user: 'postgres', database });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(statement)).rows;
    } finally {
      await client.end();
    }
  }

  return {
    url,
    query,
    async createDatabase(definition = '') {
      // Numbers of processes come again.
      const name = `test_${randomBytes(8).toString('hex')}`;
      await query('postgres', `create database ${name} ${definition}`);
      return url(name);
    },
  };
}

function makeCluster(
  programs: string,
  folder: string,
  data: string,
  { isTrusting = false }: ClusterOptions,
): void {
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, `${PASSWORD}\n`);
  const user = serverUser();
  if (user !== null) for (const path of [folder, passwordFile]) chownSync(path, user.uid, user.gid);
  const [command = '', ...args] = asServer([
    join(programs, 'initdb'),
    `--pgdata=${data}`,
    '--locale=C',
    '--encoding=UTF8',
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth-local=trust',
    `--auth-host=${isTrusting ? 'trust' : 'scram-sha-256'}`,
    '--wal-segsize=1',
    '--no-sync',
  ]);
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

/** Copies the cluster, so that the copy can follow it over its socket. */
function copyCluster(
  programs: string,
  folder: string,
  data: string,
  { port, socketFolder }: TestCluster,
): void {
  const user = serverUser();
  if (user !== null) chownSync(folder, user.uid, user.gid);
  const [command = '', ...args] = asServer([
    join(programs, 'pg_basebackup'),
    `--pgdata=${data}`,
    `--host=${socketFolder}`,
    `--port=${port}`,
    '--username=postgres',
    '--checkpoint=fast',
    '--wal-method=stream',
    '--write-recovery-conf',
    '--no-sync',
  ]);
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

/** The server refuses to run as root. It is killed when the test's process ends, for whatever reason. */
function asServer(command: readonly string[]): string[] {
  const user = serverUser();
  const identity =
    user === null ? [] : [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
  return ['setpriv', ...identity, '--pdeathsig', 'KILL', ...command];
}

/** The user that PostgreSQL's package has created; null if the tests do not run as root. */
function serverUser(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const entry = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'));
  if (entry === null) throw new Error('There is no user to run PostgreSQL as');
  return { uid: Number(entry[1]), gid: Number(entry[2]) };
}

async function isReady(child: ChildProcess): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`PostgreSQL has not started: ${said}`)));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(-4000);
      if (said.includes('database system is ready to accept')) resolve();
    });
  });
  child.stderr?.removeAllListeners('data').resume();
  child.removeAllListeners('exit');
}

/**
 * Signals its sessions, each of which is a process in its own group. The server itself must be stopped: otherwise one of
 * them may end, and be forgotten, before its turn.
 */
function signalChildren(server: ChildProcess, signal: 'SIGSTOP' | 'SIGCONT'): void {
  const children = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8');
  for (const child of children.trim().split(' ')) process.kill(Number(child), signal);
}

/** Prevents the server and its output from keeping this process alive. */
function leave(child: ChildProcess): void {
  child.unref();
  if (child.stderr instanceof Socket) child.stderr.unref();
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('There is no free port');
  return address.port;
}

/** Moves a large state from a data folder to PostgreSQL while nodes enroll and send heartbeats. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRuntime } from '../src/base/runtime.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { migrateDatabase } from '../src/store/postgresql/status.ts';
import { startCluster } from '../test/support/postgresql.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { ROOT } from './children.ts';
import type { Settings } from './contest.ts';
import { type FleetNode, heartbeatRequest, inviteSigner, joinRequest, newKeys } from './fleet.ts';
import { type Connection, openConnection } from './load/connection.ts';
import type { Load } from './load.ts';
import type { Report } from './report.ts';
import { seed } from './seed.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

/** How long clients work before the move begins, and after it has ended. */
const AROUND_MS = 2000;
/** The delay before trying again to find an instance that answers. */
const AGAIN_MS = 20;
const HEARTBEATS_AT_ONCE = 8;

export async function benchStoreMove(_load: Load, settings: Settings): Promise<Report> {
  const { seeded: nodes, dataDir, threads, progress } = settings;
  const scratch = scratchFolder('mesh-na-move-');
  const state = join(scratch.path, 'data');
  await using cluster = await startCluster({
    settings: { shared_buffers: '256MB', max_wal_size: '4GB' },
    below: tmpdir(),
  });
  const store = await cluster.createDatabase();
  await migrateDatabase(parseStoreAddress(store, {}));
  try {
    if (dataDir === null) await seed(state, { nodes, revoked: 0, invites: 0, agents: 0 }, progress);
    else cpSync(dataDir, state, { recursive: true });
    // The folder of a process is removed when it ends, but the state is still needed after that.
    await using first = await startAuthority(null, threads, (given) => symlinkSync(state, given));
    const clients = startClients(first);
    await systemRuntime.pause(AROUND_MS);
    const move = startMove(state, store, progress);
    await move.copied;
    await using second = await startAuthority(
      null,
      threads,
      (given) => symlinkSync(state, given),
      ROOT,
      {
        MESH_STORE: store,
      },
    );
    clients.alsoAsk(second);
    const moved = await move.ended;
    await systemRuntime.pause(AROUND_MS);
    const seen = await clients.stop();
    const { known, asked } = await recount(second, seen.nodes);
    return {
      benchmark: 'store-move',
      about: `${moved.rows} rows move from LMDB to PostgreSQL during the service`,
      lines: [],
      comparisons: [],
      notes: [
        `the move took ${(moved.took / 1000).toFixed(1)} s; it says that nobody could serve for ${moved.pause_ms} ms`,
        `clients: ${seen.nodes.length} enrollments and ${seen.heartbeats} heartbeats were acknowledged, ` +
          `none for ${seen.gap.toFixed(0)} ms between the last of the old instance and the first of the new one`,
        `afterwards ${known} of ${asked} acknowledged nodes were known`,
        'the digests of all tables are the same in both places',
      ],
    };
  } finally {
    scratch.remove();
  }
}

interface MoveResult {
  readonly rows: number;
  readonly pause_ms: number;
  readonly took: number;
}

function startMove(state: string, store: string, progress: Settings['progress']) {
  const began = systemRuntime.elapsed();
  const places = ['--from', `lmdb:${state}`, '--to', store, '--data-dir', state];
  const args = ['dist/src/main.js', 'store', 'move', ...places, '--yes', '--json'];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let said: () => void = () => undefined;
  const copied = new Promise<void>((resolve) => {
    said = resolve;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    for (const line of text.trimEnd().split('\n')) progress(`store-move: ${line}`);
    if (text.includes('Copied')) said();
  });
  const ended = once(child, 'close').then(([code]): MoveResult => {
    said();
    if (code !== 0) throw new Error(`The move ended with ${String(code)}`);
    const { tables, pause_ms } = JSON.parse(output) as {
      readonly tables: { readonly [table: string]: { readonly rows: number } };
      readonly pause_ms: number;
    };
    const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0);
    return { rows, pause_ms, took: systemRuntime.elapsed() - began };
  });
  return { copied, ended };
}

/** Clients that use whichever instance answers, as behind a load balancer. */
function startClients(first: AuthorityProcess) {
  const nextInvite = inviteSigner(first.network);
  const ports = [first.port];
  const nodes: FleetNode[] = [];
  let turn = 0;
  let heartbeats = 0;
  /** When each instance first and last acknowledged a request. */
  const spans = new Map<number, { readonly first: number; last: number }>();
  let isOver = false;

  function acknowledged(port: number): void {
    const now = systemRuntime.elapsed();
    const span = spans.get(port);
    if (span === undefined) spans.set(port, { first: now, last: now });
    else span.last = now;
  }

  /** Null if the request was not acknowledged. */
  async function attempt(request: () => Buffer): Promise<Buffer | null> {
    const port = ports[turn % ports.length] as number;
    const answer = await askOnce(port, request()).catch(() => null);
    if (answer?.status === 200) {
      acknowledged(port);
      return answer.body;
    }
    turn += 1;
    await systemRuntime.pause(AGAIN_MS);
    return null;
  }

  async function enroll(): Promise<void> {
    while (!isOver) {
      const invited = await attempt(() => nextInvite({}));
      if (invited === null) continue;
      const [key] = newKeys(1);
      if (key === undefined) throw new Error('There is no key');
      const joined = await attempt(() => joinRequest(key, JSON.parse(String(invited)).token_id));
      if (joined !== null) nodes.push({ key, certId: JSON.parse(String(joined)).cert_id });
    }
  }

  async function beat(lane: number): Promise<void> {
    for (let count = lane; !isOver; count += HEARTBEATS_AT_ONCE) {
      const node = nodes[count % Math.max(1, nodes.length)];
      if (node === undefined) await systemRuntime.pause(AGAIN_MS);
      else if ((await attempt(() => heartbeatRequest(node, systemRuntime.now()))) !== null) {
        heartbeats += 1;
      }
    }
  }

  const lanes = Array.from({ length: HEARTBEATS_AT_ONCE }, (_, lane) => beat(lane));
  const working = [enroll(), ...lanes];
  return {
    alsoAsk: (other: AuthorityProcess) => void ports.push(other.port),
    async stop() {
      isOver = true;
      await Promise.all(working);
      const [before, afterwards] = ports.map((port) => spans.get(port));
      const gap = (afterwards?.first ?? Number.NaN) - (before?.last ?? Number.NaN);
      return { nodes, heartbeats, gap };
    },
  };
}

async function recount({ port }: AuthorityProcess, nodes: readonly FleetNode[]) {
  let known = 0;
  for (const node of nodes) {
    const { status } = await askOnce(port, heartbeatRequest(node, systemRuntime.now()));
    if (status === 200) known += 1;
  }
  return { known, asked: nodes.length };
}

/** Idle connections by the port of their server. */
const idle = new Map<number, Set<Connection>>();

function takeIdle(port: number): Connection | undefined {
  const [connection] = idle.get(port) ?? [];
  if (connection !== undefined) idle.get(port)?.delete(connection);
  return connection;
}

/** Sends a request on a connection that is kept for the next one. */
async function askOnce(port: number, request: Buffer): Promise<{ status: number; body: Buffer }> {
  const connection = takeIdle(port) ?? (await openConnection({ port }));
  const answer = await new Promise<{ status: number; body: Buffer }>((resolve, reject) => {
    connection.answered = (status, body) => resolve({ status, body: Buffer.from(body) });
    connection.failed = reject;
    connection.send(request);
  });
  connection.failed = () => idle.get(port)?.delete(connection);
  idle.set(port, (idle.get(port) ?? new Set()).add(connection));
  return answer;
}

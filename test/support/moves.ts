/** Moves under way, clients that go on meanwhile, and what these were told. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ChildServer, type Ended, NO_LIMITS, runProgram } from './child-server.ts';
import {
  freshNonce,
  heartbeat,
  joinedNode,
  type SignedRequest,
  sendSigned,
  signedByNode,
  type TestNode,
} from './requests.ts';

export interface Workload {
  /** Nodes whose join was acknowledged, each with the last heartbeat that was. */
  readonly nodes: ReadonlyMap<TestNode, SignedRequest | null>;
  /** From now on requests go there. */
  goTo(server: ChildServer): void;
  stop(): Promise<void>;
}

/** Between two enrollments: what has happened is looked at node by node. */
const ENROLL_MS = 20;
/** Between two heartbeats: the move and both services need the processors as well. */
const BEAT_MS = 5;

/** Enrolls nodes and sends their heartbeats, without end; refused or lost requests are forgotten. */
export function startWorkload(first: ChildServer): Workload {
  const nodes = new Map<TestNode, SignedRequest | null>();
  let { na } = first;
  let isOver = false;

  async function attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch {
      // Nobody is there, or has ended before the answer.
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async function enroll(): Promise<void> {
    while (!isOver) {
      await attempt(async () => {
        const node = await joinedNode(na);
        if (node.certId !== undefined) nodes.set(node, null);
      });
      await new Promise((resolve) => setTimeout(resolve, ENROLL_MS));
    }
  }

  async function beat(): Promise<void> {
    while (!isOver) {
      for (const node of [...nodes.keys()].slice(-50)) {
        await attempt(async () => {
          const request = heartbeatOf(na, node);
          const { status } = await sendSigned(na, request);
          if (status === 200) nodes.set(node, request);
        });
        await new Promise((resolve) => setTimeout(resolve, BEAT_MS));
      }
      await new Promise((resolve) => setTimeout(resolve, BEAT_MS));
    }
  }

  const working = [enroll(), beat()];
  return {
    nodes,
    goTo(server) {
      na = server.na;
    },
    async stop() {
      isOver = true;
      await Promise.all(working);
    },
  };
}

function heartbeatOf(na: ChildServer['na'], node: TestNode): SignedRequest {
  const body = { cert_id: node.certId, status: 'healthy' };
  return signedByNode(na, '/heartbeat', node.key, body, { nonce: freshNonce() });
}

const ASKED_AT_ONCE = 20;

/** What the server says to each acknowledged node, and to its last heartbeat when that is sent again: the statuses. */
export async function judge({ na }: ChildServer, { nodes }: Workload) {
  const known = new Set<number>();
  const repeated = new Set<number>();
  const waiting = [...nodes];

  async function ask(): Promise<void> {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [node, last] = next;
      if (last !== null) repeated.add((await sendSigned(na, last)).status);
      known.add((await heartbeat(na, node)).status);
    }
  }

  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, ask));
  return { known, repeated };
}

export interface MoveArguments {
  readonly from: string;
  readonly to: string;
  readonly dataDir: string;
}

/** `mesh-na store move`, to its end. */
export function runMove(
  { from, to, dataDir }: MoveArguments,
  more: readonly string[] = [],
  onSpawn?: Parameters<typeof runProgram>[2],
): Promise<Ended> {
  const places = ['--from', from, '--to', to, '--data-dir', dataDir];
  return runProgram(['store', 'move', ...places, '--yes', ...more], NO_LIMITS, onSpawn);
}

/** A move that is under way. */
export function begunMove(move: MoveArguments, more: readonly string[] = []) {
  const heard = listener();
  return { ended: runMove(move, more, heard.onSpawn), ...heard };
}

/** Hears what a process says on standard error. */
export function listener() {
  let running: ChildProcess | null = null;
  let text = '';
  return {
    onSpawn(child: ChildProcess) {
      running = child;
      child.stderr?.on('data', (piece: string) => {
        text += piece;
      });
    },
    kill: (signal: NodeJS.Signals = 'SIGKILL') => (running as ChildProcess | null)?.kill(signal),
    /** Resolves when it says this. */
    told: (what: string) =>
      until(
        () => text.includes(what),
        () => `It has said only: ${text}`,
      ),
  };
}

/** Until so many nodes are enrolled. */
export function enough({ nodes }: Workload, count: number): Promise<void> {
  return until(
    () => nodes.size >= count,
    () => `${nodes.size} nodes were enrolled`,
  );
}

async function until(isSo: () => boolean, problem: () => string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!isSo()) {
    assert.ok(Date.now() < deadline, problem());
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A folder for what is moved, removed when the test ends. */
export function emptyFolder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'mesh-move-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A new folder of the same keys, without state. */
export function keysOf(dataDir: string, t: TestContext): string {
  const path = emptyFolder(t);
  for (const name of ['keys', 'genesis.json', 'mesh-na.json']) {
    cpSync(join(dataDir, name), join(path, name), { recursive: true });
  }
  return path;
}

/** Moves in progress, and clients that continue to work during a move and remember their answers. */
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
  /** Nodes whose join was acknowledged, each with its last acknowledged heartbeat. */
  readonly nodes: ReadonlyMap<TestNode, SignedRequest | null>;
  /** Sends later requests to this server. */
  goTo(server: ChildServer): void;
  stop(): Promise<void>;
}

/** The delay between two enrollments, which limits the number of nodes, because each one is checked afterward. */
const ENROLL_MS = 20;
/** The delay between two heartbeats, because the move and both services also need CPU time. */
const BEAT_MS = 5;

/** Continuously enrolls nodes and sends their heartbeats; refused or lost requests are forgotten. */
export function startWorkload(first: ChildServer): Workload {
  const nodes = new Map<TestNode, SignedRequest | null>();
  let { na } = first;
  let isOver = false;

  async function attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch {
      // No server is running, or it ended before it answered.
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

/**
 * The statuses of the server's answers to a new heartbeat of each acknowledged node, and to its last one sent again.
 */
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

/** Runs `mesh-na store move` until it ends. */
export function runMove(
  { from, to, dataDir }: MoveArguments,
  more: readonly string[] = [],
  onSpawn?: Parameters<typeof runProgram>[2],
): Promise<Ended> {
  const places = ['--from', from, '--to', to, '--data-dir', dataDir];
  return runProgram(['store', 'move', ...places, '--yes', ...more], NO_LIMITS, onSpawn);
}

/** Starts a move. */
export function begunMove(move: MoveArguments, more: readonly string[] = []) {
  const heard = listener();
  return { ended: runMove(move, more, heard.onSpawn), ...heard };
}

/** Collects what a process writes to standard error. */
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
    /** Resolves when the process has written this. */
    written: (what: string) =>
      until(
        () => text.includes(what),
        () => `It has said only: ${text}`,
      ),
  };
}

/** Resolves when this many nodes are enrolled. */
export function enough({ nodes }: Workload, count: number): Promise<void> {
  return until(
    () => nodes.size >= count,
    () => `${nodes.size} nodes were enrolled`,
  );
}

async function until(condition: () => boolean, problem: () => string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!condition()) {
    assert.ok(Date.now() < deadline, problem());
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A folder for a moved state, removed when the test ends. */
export function emptyFolder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'mesh-move-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A new folder with the same keys, without state. */
export function keysOf(dataDir: string, t: TestContext): string {
  const path = emptyFolder(t);
  for (const name of ['keys', 'genesis.json', 'mesh-na.json']) {
    cpSync(join(dataDir, name), join(path, name), { recursive: true });
  }
  return path;
}

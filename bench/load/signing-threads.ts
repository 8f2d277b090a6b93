/** The threads that sign requests, as seen by the thread that sends them: signing costs more than sending. */
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../src/base/error-message.ts';
import { workerEntry } from '../../src/base/worker-entry.ts';
import type { StoredNode } from './fleet-folder.ts';
import type { MixOptions } from './mix.ts';
import type { LoadSession, Site } from './requests.ts';

/** What a thread gets when it starts. */
export interface SigningTask {
  /** Its part of the fleet: all requests of a node are signed in order, by one thread. */
  readonly nodes: readonly LoadNode[];
  readonly options: MixOptions;
  readonly site: Site;
}

export interface LoadNode extends StoredNode {
  readonly session?: LoadSession;
}

export type ToSigner =
  | { readonly type: 'sign'; readonly count: number }
  | { readonly type: 'renewed'; readonly node: number; readonly certId: string };

/** Requests in a row; the arrays belong to the receiver. */
export interface SignedBatch {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where each request ends. */
  readonly ends: Uint32Array<ArrayBuffer>;
  /** The kind of each request, as an index into `KINDS`. */
  readonly kinds: Uint8Array<ArrayBuffer>;
  /** The number of the node within the thread's part of the fleet; -1 for none. */
  readonly nodes: Int32Array<ArrayBuffer>;
  readonly tookMs: number;
}

export interface SignedRequest {
  readonly bytes: Buffer;
  readonly kind: number;
  /** From now on, the thread that signed it uses this certificate for its node. */
  renewed(certId: string): StoredNode | null;
}

export interface SigningThreads {
  /** The next request in any order of threads; null if none is ready. */
  take(): SignedRequest | null;
  /** Resolves when every thread has signed something. */
  readonly ready: Promise<void>;
  /** How many requests per second all threads together could sign. */
  limit(): number;
  close(): Promise<void>;
}

/** Batches that each thread signs ahead. */
const BATCHES_AHEAD = 4;
/** A batch lasts this long at the given rate, so that requests are about half a second old when they are sent. */
const BATCH_SECONDS = 0.1;
const LARGEST_BATCH = 2000;

interface Signer {
  readonly worker: Worker;
  readonly part: StoredNode[];
  readonly batches: SignedBatch[];
  /** The place in the first batch. */
  at: number;
  signed: number;
  busyMs: number;
}

export function startSigningThreads(
  { nodes, options, site }: SigningTask,
  { threads, rate }: { readonly threads: number; readonly rate: number },
  onFailure: (cause: Error) => void,
): SigningThreads {
  const perBatch = Math.ceil((rate * BATCH_SECONDS) / threads);
  const count = Math.max(1, Math.min(LARGEST_BATCH, perBatch));
  const signers = Array.from({ length: threads }, (_, thread): Signer => {
    const part = nodes.filter((_node, index) => index % threads === thread);
    const task: SigningTask = { nodes: part, options, site };
    const { module, argv } = workerEntry('load-signing', import.meta.url);
    const worker = new Worker(module, { argv, workerData: task });
    return { worker, part, batches: [], at: 0, signed: 0, busyMs: 0 };
  });
  let isClosing = false;
  const ready = Promise.all(signers.map(firstBatch)).then(() => undefined);
  let turn = 0;

  function firstBatch(signer: Signer): Promise<void> {
    const { worker } = signer;
    for (let ahead = 0; ahead < BATCHES_AHEAD; ahead += 1) post(signer, { type: 'sign', count });
    return new Promise((resolve, reject) => {
      worker.on('message', (batch: SignedBatch) => {
        signer.batches.push(batch);
        signer.signed += batch.kinds.length;
        signer.busyMs += batch.tookMs;
        resolve();
      });
      function fail(cause: unknown): void {
        const error = new Error(`A thread that signs requests failed: ${messageOf(cause)}`);
        reject(error);
        if (!isClosing) onFailure(error);
      }
      worker.on('error', fail);
      worker.on('exit', (code) => fail(`it ended with ${code}`));
    });
  }

  function post({ worker }: Signer, message: ToSigner): void {
    worker.postMessage(message);
  }

  function takeFrom(signer: Signer): SignedRequest | null {
    const [batch] = signer.batches;
    if (batch === undefined) return null;
    const { at } = signer;
    const start = at === 0 ? 0 : (batch.ends[at - 1] ?? 0);
    const bytes = Buffer.from(batch.bytes.buffer, start, (batch.ends[at] ?? 0) - start);
    const node = batch.nodes[at] ?? -1;
    signer.at += 1;
    if (signer.at === batch.kinds.length) {
      signer.batches.shift();
      signer.at = 0;
      post(signer, { type: 'sign', count });
    }
    return {
      bytes,
      kind: batch.kinds[at] ?? 0,
      renewed(certId) {
        const stored = signer.part[node];
        if (stored === undefined) return null;
        post(signer, { type: 'renewed', node, certId });
        return { seed: stored.seed, cert_id: certId };
      },
    };
  }

  return {
    take() {
      for (let tried = 0; tried < threads; tried += 1) {
        turn = (turn + 1) % threads;
        const signer = signers[turn];
        const request = signer === undefined ? null : takeFrom(signer);
        if (request !== null) return request;
      }
      return null;
    },
    ready,
    limit: () =>
      signers.reduce(
        (sum, { signed, busyMs }) => sum + (signed / Math.max(busyMs, 0.001)) * 1000,
        0,
      ),
    async close() {
      isClosing = true;
      await Promise.all(signers.map(({ worker }) => worker.terminate()));
    },
  };
}

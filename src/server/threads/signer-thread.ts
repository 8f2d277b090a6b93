/**
 * The authority keys in a signer process, for a thread that must sign synchronously: a separate thread talks to the
 * signer, and the calling thread blocks until it has the signature, for a bounded time. After a failure, no thread
 * blocks again until the signer has shown that it works [signer-3].
 */
import type { Worker } from 'node:worker_threads';
import type { Signer } from '../../base/crypto/primitives.ts';
import { messageOf } from '../../base/error-message.ts';
import type { KeyHolder } from '../../base/signer/authority-signer.ts';
import { patienceFor, type SignerAddress } from '../../base/signer/connection.ts';
import { PROBE } from '../../base/signer/protocol.ts';
import { Refusal } from '../../protocol/refusals.ts';
import { endOf, startWorker } from './worker-thread.ts';

export interface SignerThreadIdentity {
  readonly address: SignerAddress;
  /** One number, which both sides write: 1 while the signer is available. */
  readonly isAvailable: Int32Array;
}

export type ToSignerThread =
  | {
      readonly type: 'sign';
      readonly publicKey: string;
      readonly text: Uint8Array;
      /** A status number (see `CELL`), followed by room for the signature. */
      readonly cell: SharedArrayBuffer;
    }
  /** The keys that the signer must hold from now on. */
  | { readonly type: 'require'; readonly publicKeys: readonly string[] }
  /** Drops the connection, which did not answer in time. */
  | { readonly type: 'drop' }
  | { readonly type: 'exit' };

export type FromSignerThread =
  /** It holds these keys. */
  | { readonly type: 'available'; readonly publicKeys: readonly string[] }
  /** `isLasting` if waiting does not help. */
  | { readonly type: 'unavailable'; readonly problem: string; readonly isLasting: boolean }
  /** The signer works but refuses this text. */
  | { readonly type: 'refused'; readonly problem: string };

/** The values of the status number in a cell. */
export const CELL = { asked: 0, signed: 1, failed: 2 } as const;
export const SIGNATURE_AT = Int32Array.BYTES_PER_ELEMENT;
const SIGNATURE_BYTES = 64;
const CELL_BYTES = SIGNATURE_AT + SIGNATURE_BYTES;
/** The extra time that lets the other thread give up first and report why. */
const GRACE_MS = 100;
/** How long startup waits for a signer that is started at the same time. */
const START_MS = 5000;

/** Callbacks for what happens to a signer besides signing. */
export interface SignerNotes {
  available(): void;
  unavailable(problem: string): void;
  refused(problem: string): void;
  /** A signature took this long, or was not obtained in this time. */
  asked(seconds: number, signed: boolean): void;
  /** The thread itself failed. */
  failed(cause: unknown): void;
  /** Monotonic milliseconds. */
  elapsed(): number;
}

/** Resolves once the signer at the address signs; rejects with a one-sentence error if it does not in time. */
export async function startSignerThread(
  address: SignerAddress,
  notes: SignerNotes,
): Promise<KeyHolder> {
  const isAvailable = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: SignerThreadIdentity = { address, isAvailable };
  const worker = startWorker('signer', workerData);
  let required = address.publicKeys;
  let held = signersOf(await firstAnswer(worker, address));
  notes.available();
  // The thread alone must not keep the process alive.
  worker.unref();
  const ended = endOf(worker, notes.failed);
  worker.on('message', (report: FromSignerThread) => {
    if (report.type !== 'available') return notes[report.type](report.problem);
    held = signersOf(report.publicKeys);
    notes.available();
  });

  function signersOf(publicKeys: readonly string[]): ReadonlyMap<string, Signer> {
    return new Map(
      publicKeys.map((publicKey) => {
        return [publicKey, { publicKey, sign: (text) => sign(publicKey, text) }];
      }),
    );
  }

  function sign(publicKey: string, text: string | Uint8Array): string {
    const started = notes.elapsed();
    const signature = signatureOf(publicKey, text);
    notes.asked((notes.elapsed() - started) / 1000, signature !== null);
    if (signature === null) throw new Refusal('signer_unavailable');
    return signature;
  }

  function signatureOf(publicKey: string, text: string | Uint8Array): string | null {
    if (Atomics.load(isAvailable, 0) === 0) return null;
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const cell = new SharedArrayBuffer(CELL_BYTES);
    const outcome = new Int32Array(cell, 0, 1);
    post({ type: 'sign', publicKey, text: bytes, cell });
    Atomics.wait(outcome, 0, CELL.asked, patienceFor(bytes.length) + GRACE_MS);
    const found = Atomics.load(outcome, 0);
    if (found === CELL.signed) {
      return Buffer.from(cell, SIGNATURE_AT, SIGNATURE_BYTES).toString('base64');
    }
    if (found === CELL.asked) {
      Atomics.store(isAvailable, 0, 0);
      post({ type: 'drop' });
    }
    return null;
  }

  function post(message: ToSignerThread): void {
    worker.postMessage(message);
  }

  return {
    keyOf: (publicKey) => held.get(publicKey) ?? null,
    held: () => [...held.values()],
    require(publicKeys) {
      required = publicKeys;
      post({ type: 'require', publicKeys });
    },
    isAvailable: () => Atomics.load(isAvailable, 0) === 1,
    // Any signature proves availability.
    assertAvailable() {
      for (const publicKey of required) sign(publicKey, PROBE);
    },
    close() {
      worker.ref();
      post({ type: 'exit' });
      return ended.expected();
    },
  };
}

/** The keys that the signer holds. */
function firstAnswer(worker: Worker, { path }: SignerAddress): Promise<readonly string[]> {
  let problem = 'no answer';
  return new Promise((resolve, reject) => {
    const giveUp = (why: string) => {
      clearTimeout(late);
      void worker.terminate();
      reject(new Error(`The signer at unix:${path} does not sign: ${why}`));
    };
    const late = setTimeout(() => giveUp(problem), START_MS);
    const failed = (cause: unknown) => giveUp(messageOf(cause));
    worker.once('error', failed);
    worker.on('message', function first(report: FromSignerThread) {
      if (report.type !== 'available') {
        problem = report.problem;
        if (report.type === 'unavailable' && report.isLasting) giveUp(problem);
        return;
      }
      clearTimeout(late);
      worker.off('message', first).off('error', failed);
      resolve(report.publicKeys);
    });
  });
}

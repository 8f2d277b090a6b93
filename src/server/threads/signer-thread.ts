/**
 * The key of the authority in another process, seen from a thread that decides without waiting: a thread of its own
 * talks to the signer, and anyone who signs is stopped until it has the signature, for a bounded time. Once a signer has
 * not signed, nobody is stopped for it again before it has shown that it signs [signer-3].
 */
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../base/error-message.ts';
import { Refusal } from '../../base/refusal.ts';
import type { AuthoritySigner } from '../../base/signer/authority-signer.ts';
import { patienceFor, type SignerAddress } from '../../base/signer/connection.ts';
import { PROBE } from '../../base/signer/protocol.ts';
import { endOf } from './thread-end.ts';
import { threadEntry } from './thread-entry.ts';

export interface SignerThreadIdentity {
  readonly address: SignerAddress;
  /** One number, which both sides write: 1 while the signer signs. */
  readonly isAvailable: Int32Array;
}

export type ToSignerThread =
  | {
      readonly type: 'sign';
      readonly text: Uint8Array;
      /** A number, which says what became of the text, and room for the signature after it. */
      readonly cell: SharedArrayBuffer;
    }
  /** The connection has not answered in time. */
  | { readonly type: 'drop' }
  | { readonly type: 'exit' };

export type FromSignerThread =
  | { readonly type: 'available' }
  /** `isLasting` when waiting does not mend it. */
  | { readonly type: 'unavailable'; readonly problem: string; readonly isLasting: boolean }
  /** It signs, but not this. */
  | { readonly type: 'refused'; readonly problem: string };

/** What the number in a cell says. */
export const CELL = { asked: 0, signed: 1, failed: 2 } as const;
export const SIGNATURE_AT = Int32Array.BYTES_PER_ELEMENT;
const SIGNATURE_BYTES = 64;
const CELL_BYTES = SIGNATURE_AT + SIGNATURE_BYTES;
/** The other thread gives up first, and says why. */
const GRACE_MS = 100;
/** How long a start waits for a signer that is started at the same time. */
const START_MS = 5000;

/** What a signer reports in addition to the signatures that it makes. */
export interface SignerNotes {
  available(): void;
  unavailable(problem: string): void;
  refused(problem: string): void;
  /** How long a signature took, or how long was waited in vain. */
  asked(seconds: number, signed: boolean): void;
  /** The thread itself has failed. */
  failed(cause: unknown): void;
  /** Monotonic milliseconds. */
  elapsed(): number;
}

/** Resolves once the signer at the address signs; rejects with one sentence when it does not in time. */
export async function startSignerThread(
  address: SignerAddress,
  notes: SignerNotes,
): Promise<AuthoritySigner> {
  const isAvailable = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: SignerThreadIdentity = { address, isAvailable };
  const worker = new Worker(threadEntry('signer'), { workerData });
  await firstAnswer(worker, address);
  notes.available();
  // A process that has nothing else to do ends.
  worker.unref();
  const ended = endOf(worker, notes.failed);
  worker.on('message', (report: FromSignerThread) => {
    if (report.type === 'available') notes.available();
    else notes[report.type](report.problem);
  });

  function sign(text: string | Uint8Array): string {
    const started = notes.elapsed();
    const signature = signatureOf(text);
    notes.asked((notes.elapsed() - started) / 1000, signature !== null);
    if (signature === null) throw new Refusal('signer_unavailable');
    return signature;
  }

  function signatureOf(text: string | Uint8Array): string | null {
    if (Atomics.load(isAvailable, 0) === 0) return null;
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const cell = new SharedArrayBuffer(CELL_BYTES);
    const outcome = new Int32Array(cell, 0, 1);
    post({ type: 'sign', text: bytes, cell });
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
    publicKey: address.publicKey,
    sign,
    isAvailable: () => Atomics.load(isAvailable, 0) === 1,
    // Any signature shows it.
    assertAvailable: () => void sign(PROBE),
    close() {
      worker.ref();
      post({ type: 'exit' });
      return ended.expected();
    },
  };
}

function firstAnswer(worker: Worker, { path }: SignerAddress): Promise<void> {
  let problem = 'nobody answers';
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
      resolve();
    });
  });
}

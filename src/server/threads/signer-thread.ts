/**
 * The authority keys in a signer process, for a thread that must sign synchronously: a separate thread talks to the
 * signer, and the calling thread blocks until it has the signature, for a bounded time. After a failure, no thread
 * blocks again until the signer has shown that it works [signer-3].
 */
import { signerFromSeed } from '../../base/crypto/ed25519.ts';
import type { RecordSigner, Signer } from '../../base/crypto/primitives.ts';
import { messageOf } from '../../base/error-message.ts';
import { systemRuntime } from '../../base/runtime.ts';
import {
  heldHere,
  type KeyHolder,
  type KeySource,
  type SigningKeys,
  signerWith,
} from '../../base/signer/authority-signer.ts';
import { patienceFor, type SignerAddress } from '../../base/signer/connection.ts';
import { PROBE } from '../../base/signer/protocol.ts';
import { Refusal } from '../../protocol/refusals.ts';
import { createPeer, endOf, type Peer, startWorker } from './rpc.ts';

export interface SignerThreadIdentity {
  readonly address: SignerAddress;
  /** One number, which both sides write: 1 while the signer is available. */
  readonly isAvailable: Int32Array;
}

/** What is asked of the thread. */
export type SignerProcedures = {
  /** `cell` has a status number (see `CELL`), followed by room for the signature. */
  sign(publicKey: string, text: Uint8Array, cell: SharedArrayBuffer): void;
  /** The keys that the signer must hold from now on. */
  require(publicKeys: readonly string[]): void;
  /** Drops the connection, which did not answer in time. */
  drop(): void;
  exit(): void;
};

/** What the thread says by itself. */
export type SignerNews = {
  /** The signer holds these keys. */
  available(publicKeys: readonly string[]): void;
  unavailable(problem: string): void;
  /** It is unavailable, and waiting does not help. */
  unfit(problem: string): void;
  /** The signer works but refuses this text. */
  refused(problem: string): void;
};

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
  let held: ReadonlyMap<string, Signer> = new Map();
  const start = createStart(address);
  const thread = createPeer<SignerProcedures>(worker, {
    available(publicKeys) {
      held = new Map(
        publicKeys.map((publicKey) => [publicKey, { publicKey, sign: sign(publicKey) }]),
      );
      start.succeed();
      notes.available();
    },
    unavailable(why) {
      if (!start.isStillWaiting(why)) notes.unavailable(why);
    },
    unfit(why) {
      if (start.isStillWaiting(why)) start.fail(why);
      else notes.unavailable(why);
    },
    refused: notes.refused,
  } satisfies SignerNews);
  const sign = (publicKey: string) => (text: string | Uint8Array) =>
    measuredSignature(() => signatureOf(thread, isAvailable, publicKey, text), notes);
  worker.once('error', (cause) => start.fail(messageOf(cause)));
  await start.done.catch((cause) => {
    void worker.terminate();
    throw cause;
  });
  // The thread alone must not keep the process alive.
  worker.unref();
  const ended = endOf(worker, notes.failed);

  return {
    keyOf: (publicKey) => held.get(publicKey) ?? null,
    held: () => [...held.values()],
    require(publicKeys) {
      required = publicKeys;
      thread.notify('require', publicKeys);
    },
    isAvailable: () => Atomics.load(isAvailable, 0) === 1,
    // Any signature proves availability.
    assertAvailable() {
      for (const publicKey of required) sign(publicKey)(PROBE);
    },
    close() {
      worker.ref();
      thread.notify('exit');
      return ended.expected();
    },
  };
}

/** The wait for a signer that may be started at the same time. */
function createStart({ path }: SignerAddress) {
  let succeed = (): void => undefined;
  let fail = (_why: string): void => undefined;
  let isOver = false;
  let problem = 'no answer';
  const started = new Promise<void>((resolve, reject) => {
    succeed = resolve;
    fail = (why) => reject(new Error(`The signer at unix:${path} does not sign: ${why}`));
  });
  const late = setTimeout(() => fail(problem), START_MS);
  return {
    done: started.finally(() => {
      isOver = true;
      clearTimeout(late);
    }),
    succeed,
    fail,
    /** Notes the problem that an end of the wait would name. */
    isStillWaiting(why: string): boolean {
      problem = why;
      return !isOver;
    },
  };
}

function measuredSignature(sign: () => string | null, { asked, elapsed }: SignerNotes): string {
  const began = elapsed();
  const signature = sign();
  asked((elapsed() - began) / 1000, signature !== null);
  if (signature === null) throw new Refusal('signer_unavailable');
  return signature;
}

/** Blocks the calling thread; null if there is no signature in time. */
function signatureOf(
  thread: Peer<SignerProcedures>,
  isAvailable: Int32Array,
  publicKey: string,
  text: string | Uint8Array,
): string | null {
  if (Atomics.load(isAvailable, 0) === 0) return null;
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const cell = new SharedArrayBuffer(CELL_BYTES);
  const outcome = new Int32Array(cell, 0, 1);
  thread.notify('sign', publicKey, bytes, cell);
  Atomics.wait(outcome, 0, CELL.asked, patienceFor(bytes.length) + GRACE_MS);
  const found = Atomics.load(outcome, 0);
  if (found === CELL.signed) {
    return Buffer.from(cell, SIGNATURE_AT, SIGNATURE_BYTES).toString('base64');
  }
  if (found === CELL.asked) {
    Atomics.store(isAvailable, 0, 0);
    thread.notify('drop');
  }
  return null;
}

export interface OpenSigner {
  readonly signer: RecordSigner;
  close(): Promise<void>;
}

/**
 * The authority keys for a thread or process: from seeds that it receives, or through a signer process. Resolves when
 * the signer is available; rejects with a one-sentence error.
 */
export async function openSigner(
  source: KeySource,
  keys: SigningKeys,
  fromSeed: (seed: Buffer) => Signer = signerFromSeed,
): Promise<OpenSigner> {
  const holder =
    source.kind === 'seeds'
      ? heldHere(() => source.seeds.map((seed) => fromSeed(Buffer.from(seed))))
      : await openSignerProcess(source.path, keys);
  return { signer: signerWith(holder, keys), close: holder.close };
}

function openSignerProcess(path: string, { current, previous }: SigningKeys): Promise<KeyHolder> {
  const publicKeys = [current, ...(previous === null ? [] : [previous])].map(
    ({ publicKey }) => publicKey,
  );
  return startSignerThread({ path, publicKeys }, NO_NOTES);
}

/** The caller reports missing signatures, and a failed signer thread ends the thread that uses it. */
const NO_NOTES: SignerNotes = {
  available: () => undefined,
  unavailable: () => undefined,
  refused: () => undefined,
  asked: () => undefined,
  failed(cause) {
    throw cause;
  },
  elapsed: systemRuntime.elapsed,
};

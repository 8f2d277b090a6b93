/** The thread that talks to the signer, so that another thread can block until it has a signature. */

import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { messageOf } from '../../base/error-message.ts';
import { systemRuntime } from '../../base/runtime.ts';
import {
  connectSigner,
  type SignerConnection,
  SignerRefusal,
  UnfitSigner,
} from '../../base/signer/connection.ts';
import { CHALLENGE_BYTES } from '../../base/signer/protocol.ts';
import { createPeer } from './rpc.ts';
import {
  CELL,
  SIGNATURE_AT,
  type SignerNews,
  type SignerProcedures,
  type SignerThreadIdentity,
} from './signer-thread.ts';

/** The initial and the longest delay between two connection attempts. */
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1000;
/** A signer that hangs while idle is detected within this time. */
const PROBE_MS = 5000;

const port = parentPort;
if (port === null) throw new Error('The signer client runs as a worker thread');
const { address, isAvailable } = workerData as SignerThreadIdentity;
const { path } = address;
let { publicKeys } = address;
let connection: SignerConnection | null = null;

const user = createPeer<SignerNews>(port, {
  sign(publicKey, text, cell) {
    void sign(publicKey, text).then(
      (signature) => {
        Buffer.from(cell).set(signature, SIGNATURE_AT);
        settle(cell, CELL.signed);
      },
      () => settle(cell, CELL.failed),
    );
  },
  require(keys) {
    publicKeys = keys;
  },
  drop: () => connection?.end('it did not answer in time'),
  exit() {
    closing.abort();
    clearInterval(probing);
    connection?.end('it is no longer needed');
    port.close();
  },
} satisfies SignerProcedures);
/** A problem is reported once, and not with each attempt to connect. */
let lastProblem = '';
const probing = setInterval(
  () => void connection?.probe(publicKeys).catch(() => undefined),
  PROBE_MS,
);
const closing = new AbortController();
await stayConnected();

async function sign(publicKey: string, text: Uint8Array): Promise<Buffer> {
  if (connection === null) throw new Error('There is no connection');
  try {
    return await connection.sign(publicKey, text);
  } catch (cause) {
    // Any other problem ends the connection, and that is reported when it has ended.
    if (cause instanceof SignerRefusal) report('refused', cause.message);
    throw cause;
  }
}

function settle(cell: SharedArrayBuffer, outcome: number): void {
  const number = new Int32Array(cell, 0, 1);
  Atomics.store(number, 0, outcome);
  Atomics.notify(number, 0);
}

async function stayConnected(): Promise<void> {
  for (
    let waitMs = FIRST_WAIT_MS;
    !closing.signal.aborted;
    waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)
  ) {
    try {
      connection = await connectSigner({
        path,
        publicKeys,
        verify: verifySignature,
        nonce: () => systemRuntime.randomBytes(CHALLENGE_BYTES),
      });
      waitMs = FIRST_WAIT_MS;
      Atomics.store(isAvailable, 0, 1);
      lastProblem = '';
      user.notify('available', connection.publicKeys);
      const reason = await connection.ended;
      connection = null;
      Atomics.store(isAvailable, 0, 0);
      report('unavailable', reason);
    } catch (cause) {
      report(cause instanceof UnfitSigner ? 'unfit' : 'unavailable', messageOf(cause));
    }
    await delay(waitMs, undefined, { signal: closing.signal }).catch(() => undefined);
  }
}

function report(what: 'unavailable' | 'unfit' | 'refused', problem: string): void {
  if (`${what} ${problem}` !== lastProblem) user.notify(what, problem);
  lastProblem = `${what} ${problem}`;
}

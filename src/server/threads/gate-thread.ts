/** The thread on which other instances reach this one, as seen by the authority's thread. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SharedKey } from '../../edge/forward/target.ts';
import type { GateOptions } from '../forward/gate.ts';
import { createPeer, endOf, startWorker } from './rpc.ts';

export type GateProcedures = {
  /** Returns the address for other instances, as `host:port`, once it is listening. */
  open(options: GateOptions): Promise<string>;
  /** See `Gate.accept`. */
  accept(keys: readonly SharedKey[]): void;
  /** See `Gate.close`. */
  close(patienceMs: number): Promise<void> | undefined;
};

export interface GateThreadOptions extends Omit<GateOptions, 'sockets'> {
  /** The number of threads that serve; with 1, the authority's thread serves. */
  readonly threads: number;
}

/** How long other instances may take to see that another one is active. */
const PATIENCE_MS = 1000;

export type GateThread = Awaited<ReturnType<typeof openGateThread>>;

/** Resolves once it is listening; rejects with a one-sentence error. */
export async function openGateThread(
  { threads, ...options }: GateThreadOptions,
  onFailure: (cause: unknown) => void,
) {
  const folder = await mkdtemp(join(tmpdir(), 'mesh-na-'));
  const slots = threads === 1 ? [0] : Array.from({ length: threads }, (_, index) => index + 1);
  const sockets = slots.map((slot) => join(folder, String(slot)));
  const worker = startWorker('gate');
  const ended = endOf(worker, onFailure);
  const gate = createPeer<GateProcedures>(worker, {});
  async function end(): Promise<void> {
    const expected = ended.expected();
    await worker.terminate();
    await expected;
    await rm(folder, { recursive: true, force: true });
  }
  try {
    return {
      /** Of the sockets at which edges take what other instances forward, by the numbers of their slots. */
      folder,
      address: await gate.call('open', { ...options, sockets }),
      accept: (keys: readonly SharedKey[]) => gate.notify('accept', keys),
      async close(): Promise<void> {
        await gate.call('close', PATIENCE_MS);
        await end();
      },
    };
  } catch (cause) {
    await end();
    throw cause;
  }
}

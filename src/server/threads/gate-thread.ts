/** The thread on which other instances reach this one, as seen by the authority's thread. */
import type { SharedKey } from '../../edge/forward/target.ts';
import type { GateOptions } from '../forward/gate.ts';
import { createPeer } from './rpc.ts';
import { endOf, startWorker } from './worker-thread.ts';

export type GateProcedures = {
  /** Returns the address for other instances, as `host:port`, once it is listening. */
  open(options: GateOptions): Promise<string>;
  /** See `Gate.accept`. */
  accept(keys: readonly SharedKey[]): void;
};

/** Resolves once it is listening; rejects with a one-sentence error. */
export async function openGateThread(options: GateOptions, onFailure: (cause: unknown) => void) {
  const worker = startWorker('gate');
  const ended = endOf(worker, onFailure);
  const gate = createPeer<GateProcedures>(worker, {});
  async function close(): Promise<void> {
    const end = ended.expected();
    await worker.terminate();
    await end;
  }
  try {
    const address = await gate.call('open', options);
    return { address, accept: (keys: readonly SharedKey[]) => gate.notify('accept', keys), close };
  } catch (cause) {
    await close();
    throw cause;
  }
}

/** The gate, as seen by the authority's thread. */
import { Worker } from 'node:worker_threads';
import { workerEntry } from '../../base/worker-entry.ts';
import type { SharedKey } from '../../edge/forward/target.ts';
import { createRpcCaller, type RpcAnswer } from '../threads/rpc.ts';
import { endOf } from '../threads/worker-thread.ts';
import type { GateOptions } from './gate.ts';

export type GateProcedures = {
  /** Returns the address for other instances. */
  open(options: GateOptions): Promise<string>;
  accept(keys: readonly SharedKey[]): void;
  close(): void;
};

export interface GateThread {
  /** The address for other instances, as `host:port`. */
  readonly address: string;
  /** See `Gate.accept`. */
  accept(keys: readonly SharedKey[]): void;
  close(): Promise<void>;
}

/** Resolves once it is listening; rejects with a one-sentence error. */
export async function openGateThread(
  options: GateOptions,
  onFailure: (cause: unknown) => void,
): Promise<GateThread> {
  const { module, argv } = workerEntry('gate', import.meta.url);
  const worker = new Worker(module, { argv });
  const ended = endOf(worker, onFailure);
  const rpc = createRpcCaller<GateProcedures>((call) => worker.postMessage(call));
  worker.on('message', (answer: RpcAnswer) => rpc.take(answer));

  async function close(): Promise<void> {
    void rpc.call('close');
    await ended.expected();
  }

  try {
    const address = await rpc.call('open', options);
    return { address, accept: (keys) => void rpc.call('accept', keys), close };
  } catch (cause) {
    await close();
    throw new Error(sentenceOf(cause));
  }
}

/** The cause without the stack of the other thread. */
function sentenceOf(cause: unknown): string {
  const [first = ''] = String(cause instanceof Error ? cause.message : cause).split('\n');
  return first.replace(/^Error: /, '');
}

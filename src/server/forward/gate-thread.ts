/** The gate, as seen by the authority's thread. */
import { Worker } from 'node:worker_threads';
import { workerEntry } from '../../base/worker-entry.ts';
import type { SharedKey } from '../../edge/forward/target.ts';
import { endOf } from '../threads/worker-thread.ts';
import type { GateOptions } from './gate.ts';

/** Resolves once it is listening; rejects with a one-sentence error. */
export async function openGateThread(options: GateOptions, onFailure: (cause: unknown) => void) {
  const { module, argv } = workerEntry('gate', import.meta.url);
  const worker = new Worker(module, { argv, workerData: options });
  let failed = onFailure;
  const ended = endOf(worker, (cause) => failed(cause));
  const address = await new Promise<string>((resolve, reject) => {
    failed = reject;
    worker.once('message', resolve);
  });
  failed = onFailure;
  return {
    /** The address for other instances, as `host:port`. */
    address,
    /** See `Gate.accept`. */
    accept: (keys: readonly SharedKey[]): void => worker.postMessage(keys),
    async close(): Promise<void> {
      const end = ended.expected();
      await worker.terminate();
      await end;
    },
  };
}

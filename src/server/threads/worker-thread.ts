/** The threads of the service: how they start, and how a requested end differs from a failure. */
import { Worker } from 'node:worker_threads';
import { workerEntry } from '../../base/worker-entry.ts';

export function startWorker(
  name: 'edge' | 'gate' | 'list' | 'signer' | 'visit' | 'watchdog',
  workerData?: unknown,
): Worker {
  const { module, argv } = workerEntry(name, import.meta.url);
  return new Worker(module, { argv, workerData });
}

/** A failure is reported once. */
export function endOf(worker: Worker, onFailure: (cause: unknown) => void) {
  let isExpected = false;
  let hasFailed = false;
  worker.once('error', (cause) => {
    hasFailed = true;
    onFailure(cause);
  });
  const ended = new Promise<void>((resolve) => {
    worker.once('exit', (code) => {
      resolve();
      if (!isExpected && !hasFailed)
        onFailure(new Error(`The thread ended with exit code ${code}`));
    });
  });
  return {
    /** Makes the end of the thread expected from now on; resolves when it has ended. */
    expected(): Promise<void> {
      isExpected = true;
      return ended;
    },
  };
}

/** Distinguishes a requested end of a thread from a failure, which is reported once. */
import type { Worker } from 'node:worker_threads';

export interface ThreadEnd {
  /** Makes the end of the thread expected from now on; resolves when it has ended. */
  expected(): Promise<void>;
}

export function endOf(worker: Worker, onFailure: (cause: unknown) => void): ThreadEnd {
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
    expected() {
      isExpected = true;
      return ended;
    },
  };
}

/** Edge threads that tests reuse: starting new ones for every server would take most of the time. */
import type { Worker } from 'node:worker_threads';
import { type EdgeThread, edgeThreadOn } from '../../src/server/threads/edge-threads.ts';
import { startWorker } from '../../src/server/threads/rpc.ts';

const idle: Worker[] = [];

/** A thread of an earlier server, or a new one; it does not keep the process alive while it is idle. */
export function reusedEdgeThread(onFailure: (cause: unknown) => void): EdgeThread {
  const worker = idle.pop() ?? startWorker('edge');
  worker.removeAllListeners();
  worker.ref();
  return {
    ...edgeThreadOn(worker, onFailure),
    async end() {
      worker.unref();
      idle.push(worker);
    },
  };
}

/** Edge threads that tests reuse: starting new ones for every server would take most of the time. */
import { Worker } from 'node:worker_threads';
import {
  EDGE_WORKER,
  type EdgeThread,
  edgeThreadOn,
} from '../../src/server/threads/edge-threads.ts';

const idle: Worker[] = [];

/** A thread of an earlier server, or a new one; it does not keep the process alive while it is idle. */
export function reusedEdgeThread(onFailure: (cause: unknown) => void): EdgeThread {
  const worker = idle.pop() ?? new Worker(EDGE_WORKER);
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

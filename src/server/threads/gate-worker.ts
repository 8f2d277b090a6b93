/** The gate on its own thread, so that encryption takes no time from the authority or an edge. */
import { parentPort } from 'node:worker_threads';
import { type Gate, openGate } from '../forward/gate.ts';
import type { GateProcedures } from './gate-thread.ts';
import { createPeer } from './rpc.ts';

const port = parentPort;
if (port === null) throw new Error('A gate runs as a worker thread');
let gate: Gate | undefined;

createPeer(port, {
  async open(options) {
    gate = await openGate(options);
    return gate.address;
  },
  accept: (keys) => gate?.accept(keys),
  close: (patienceMs) => gate?.close(patienceMs),
} satisfies GateProcedures);

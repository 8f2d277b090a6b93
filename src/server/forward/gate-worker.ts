/** The gate on its own thread, so that encryption takes no time from the authority or an edge. */
import { parentPort } from 'node:worker_threads';
import { answerCall, type RpcCall } from '../threads/rpc.ts';
import { type Gate, openGate } from './gate.ts';
import type { GateProcedures } from './gate-thread.ts';

const port = parentPort;
if (port === null) throw new Error('A gate runs as a worker thread');
let gate: Gate | null = null;

const PROCEDURES: GateProcedures = {
  async open(options) {
    gate = await openGate(options);
    return gate.address;
  },
  accept: (keys) => gate?.accept(keys),
  close() {
    gate?.close();
    // The answer is still sent.
    setImmediate(() => port.close());
  },
};

port.on('message', (call: RpcCall) => {
  void answerCall(PROCEDURES, call, (answer) => port.postMessage(answer));
});

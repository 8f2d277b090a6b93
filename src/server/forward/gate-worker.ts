/** The gate on its own thread, so that encryption takes no time from the authority or an edge. */
import { parentPort, workerData } from 'node:worker_threads';
import type { SharedKey } from '../../edge/forward/target.ts';
import { type GateOptions, openGate } from './gate.ts';

const port = parentPort;
if (port === null) throw new Error('A gate runs as a worker thread');

// A rejection ends the thread with this error.
void openGate(workerData as GateOptions).then((gate) => {
  port.on('message', (keys: readonly SharedKey[]) => gate.accept(keys));
  port.postMessage(gate.address);
});

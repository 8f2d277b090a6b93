/** `node heartbeat`: once, or at an interval until a signal. */

import { systemRuntime } from '../base/runtime.ts';
import { createNodeClient } from '../client/node-client.ts';
import { onLocalFiles, outcomeOf } from './exit-codes.ts';
import { type HeartbeatLoop, keepBeating } from './heartbeat-loop.ts';
import { readCertificate, readNodeKey } from './node-folder.ts';
import { pinnedAudience } from './node-trust.ts';
import type { NodeOptions } from './options.ts';
import { type OutputOptions, printNotice, printResult } from './output.ts';
import { serverOf } from './server.ts';

interface HeartbeatOptions extends NodeOptions {
  readonly status: string;
  readonly every?: number;
}

export async function runHeartbeat(options: HeartbeatOptions): Promise<void> {
  const { nodeDir, every, status, proof } = options;
  const key = onLocalFiles(() => readNodeKey(nodeDir));
  const bound = proof === 'header' && { audience: pinnedAudience(nodeDir) };
  const client = createNodeClient({ ...serverOf(options), proof, key, ...bound });
  // Read at every heartbeat, because a renewal during the loop replaces it.
  const beat = () => {
    const { cert_id } = onLocalFiles(() => readCertificate(nodeDir));
    return client.heartbeat({ cert_id, status });
  };
  if (every !== undefined) {
    return beatUntilStopped(options, { everySeconds: every, beat, noun: 'heartbeats' });
  }
  const { ack, server_time } = await beat();
  printResult(options, { ack, server_time }, [`Heartbeat acknowledged at ${server_time}.`]);
}

export interface Repetition extends Pick<HeartbeatLoop, 'beat' | 'everySeconds'> {
  /** What the loop sends, in the plural. */
  readonly noun: string;
}

/** Sends heartbeats until SIGINT or SIGTERM, and then reports their number. */
export async function beatUntilStopped(
  options: OutputOptions,
  { beat, everySeconds, noun }: Repetition,
): Promise<void> {
  const stopped = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopped.abort());
  const count = await keepBeating({
    beat,
    everySeconds,
    random: () => systemRuntime.randomBytes(1).readUInt8() / 255,
    onMissed: (error) => printNotice(outcomeOf(error).message),
    signal: stopped.signal,
  });
  printResult(options, count, [
    `Stopped: ${count.acknowledged} ${noun} acknowledged, ${count.missed} missed.`,
  ]);
}

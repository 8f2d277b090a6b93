/** Sends requests one at a time during other work, and measures how long each one takes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemRuntime } from '../src/base/runtime.ts';
import { getRequest } from './fleet.ts';
import { openConnection } from './load/connection.ts';

const EVERY_MS = 50;

export const healthRequest = (): Buffer => getRequest('/healthz');

/** Sends a request every 50 ms on a separate connection until `other` has ended; returns latencies in milliseconds. */
export async function probeUntil(
  { port }: { readonly port: number },
  other: Promise<unknown>,
  nextRequest: () => Buffer = healthRequest,
): Promise<number[]> {
  let running = true;
  void other
    .catch(() => undefined)
    .finally(() => {
      running = false;
    });
  const connection = await openConnection({ port });
  const latencies: number[] = [];
  while (running) {
    const sentAt = systemRuntime.elapsed();
    const status = await new Promise<number>((resolve, reject) => {
      connection.answered = resolve;
      connection.failed = reject;
      connection.send(nextRequest());
    });
    if (status !== 200) throw new Error(`A request during the load was answered ${status}`);
    latencies.push(systemRuntime.elapsed() - sentAt);
    await sleep(EVERY_MS);
  }
  connection.close();
  return latencies;
}

/** The latencies as text. */
export function latencyText(latencies: readonly number[]): string {
  const at = sharesOf(latencies);
  return `p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms, longest ${at(1).toFixed(1)} ms`;
}

export function delayText(delays: readonly number[]): string {
  const at = sharesOf(delays);
  return `p50 ${at(0.5).toFixed(0)} ms, p99 ${at(0.99).toFixed(0)} ms`;
}

/** The value that this share of the values does not exceed. */
function sharesOf(values: readonly number[]): (share: number) => number {
  const sorted = values.toSorted((a, b) => a - b);
  return (share) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
}

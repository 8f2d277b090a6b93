/** The cost of event readers for an otherwise idle authority: memory per reader, and CPU per event and reader. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemRuntime } from '../src/base/runtime.ts';
import type { OperatorClient } from '../src/client/operator-client.ts';
import type { Listener } from './audience.ts';
import { cpuSecondsOf } from './cpu.ts';
import { delayText } from './probes.ts';

export interface MeasuredReaders {
  readonly pid: number;
  readonly operator: OperatorClient;
  open(): Promise<readonly Listener[]>;
}

const EVENTS = 20;
const SETTLED_MS = 1000;
const IDLE_MS = 5000;

/** Measures the cost, and returns it as a note for a report. */
export async function readerCost({ pid, operator, open }: MeasuredReaders): Promise<string> {
  await happen(operator, []);
  const alone = await cpuOf(pid, () => happen(operator, []));
  await sleep(SETTLED_MS);
  const before = anonymousBytes(pid);
  const readers = await open();
  await sleep(SETTLED_MS);
  const bytes = (anonymousBytes(pid) - before) / readers.length;
  const idle = (await cpuOf(pid, () => sleep(IDLE_MS))) / (IDLE_MS / 1000);
  const delays: number[] = [];
  const heard = await cpuOf(
    pid,
    async () => void delays.push(...(await happen(operator, readers))),
  );
  for (const { socket } of readers) socket.destroy();
  const micros = ((heard - alone) * 1e6) / (EVENTS * readers.length);
  return [
    `each of ${readers.length} readers: ${(bytes / 1024).toFixed(1)} KiB, ${micros.toFixed(1)} µs of CPU for each event`,
    `without events ${(idle * 100).toFixed(1)} % of a core for all of them`,
    `an event reaches the last one ${delayText(delays)} after its answer`,
  ].join('; ');
}

/**
 * Causes events one after another, each after all readers received the previous one; returns how long after its answer
 * each event reached the last reader.
 */
async function happen(operator: OperatorClient, readers: readonly Listener[]): Promise<number[]> {
  const delays: number[] = [];
  for (let count = 0; count < EVENTS; count += 1) {
    const mark = systemRuntime.uuid();
    const heard = Promise.all(readers.map((reader) => hears(reader, mark)));
    await operator.createInvites({ roles: [`role:${mark}`] });
    const answeredAt = systemRuntime.elapsed();
    await heard;
    delays.push(systemRuntime.elapsed() - answeredAt);
  }
  return delays;
}

function hears(reader: Listener, mark: string): Promise<void> {
  return new Promise((resolve) => {
    reader.onText = (text) => {
      if (text.includes(mark)) resolve();
    };
  });
}

async function cpuOf(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = cpuSecondsOf(pid);
  await work();
  return cpuSecondsOf(pid) - before;
}

function anonymousBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024;
}

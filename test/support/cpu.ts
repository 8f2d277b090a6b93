/** CPU time of all threads of this process, which other processes do not affect, and of each thread of another. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Milliseconds of CPU. */
export async function cpuOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

export const CAN_MEASURE_THREADS = existsSync('/proc/self/schedstat');

export interface ThreadCpu {
  /** Milliseconds of the main thread, which is the authority if there are edge threads. */
  readonly main: number;
  /** Milliseconds of the busiest other thread, which is the edge that answered. */
  readonly edge: number;
}

/** The CPU time that the work takes on the threads of the process. */
export async function threadCpuOf(pid: number, work: () => Promise<void>): Promise<ThreadCpu> {
  const before = threadTimes(pid);
  await work();
  const used = [...threadTimes(pid)].map(
    ([thread, time]) => [thread, (time - (before.get(thread) ?? 0)) / 1e6] as const,
  );
  const main = used.find(([thread]) => thread === pid)?.[1] ?? 0;
  const edge = Math.max(0, ...used.filter(([thread]) => thread !== pid).map(([, time]) => time));
  return { main, edge };
}

function threadTimes(pid: number): Map<number, number> {
  const threads = readdirSync(`/proc/${pid}/task`);
  return new Map(threads.map((thread) => [Number(thread), timeOf(pid, thread)]));
}

/** Zero for a thread that has just ended. */
function timeOf(pid: number, thread: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  } catch {
    return 0;
  }
}

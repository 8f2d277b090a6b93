/** CPU time and memory of a process, as Linux shows them in /proc. */
import { readFileSync } from 'node:fs';

/** Linux reports CPU time in hundredths of a second on every architecture it runs on. */
const TICKS_PER_SECOND = 100;

/** CPU seconds a process has used so far in all its threads, user and system. */
export function cpuSecondsOf(pid: number): number {
  return secondsIn(`/proc/${pid}/stat`);
}

export interface CpuUse {
  readonly serverCpuSeconds: number;
  /** Its main thread only, which in a server with edge threads is the authority's. */
  readonly mainThreadSeconds: number;
}

/** Measures what the process uses from this call until the returned function is called. */
export function countCpuOf(pid: number): () => CpuUse {
  const mainThread = `/proc/${pid}/task/${pid}/stat`;
  const [all, main] = [cpuSecondsOf(pid), secondsIn(mainThread)];
  return () => ({
    serverCpuSeconds: cpuSecondsOf(pid) - all,
    mainThreadSeconds: secondsIn(mainThread) - main,
  });
}

/** Memory of a process, in MiB; mapped files are those that the system may reclaim. */
export function memoryOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const [resident = 0, anonymous = 0, files = 0] = ['VmRSS', 'RssAnon', 'RssFile'].map((field) =>
    Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? Number.NaN) / 1024),
  );
  return { resident, anonymous, files };
}

function secondsIn(path: string): number {
  const stat = readFileSync(path, 'latin1');
  // The command name is in parentheses and may contain spaces, so fields are counted after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [userTicks, systemTicks] = fields.slice(11, 13).map(Number);
  return ((userTicks ?? 0) + (systemTicks ?? 0)) / TICKS_PER_SECOND;
}

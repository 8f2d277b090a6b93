import { readFileSync } from 'node:fs';

/** Linux reports CPU time in hundredths of a second on every architecture it runs on. */
const TICKS_PER_SECOND = 100;

/** CPU seconds a process has used so far in all its threads, user and system. */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The command name stands in parentheses and may hold blanks, so fields are counted behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [userTicks, systemTicks] = fields.slice(11, 13).map(Number);
  return ((userTicks ?? 0) + (systemTicks ?? 0)) / TICKS_PER_SECOND;
}

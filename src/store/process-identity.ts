import { readFileSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since boot, where the system tells it: process ids are used again. */
  readonly startedAt: string | null;
}

export function describeSelf(): ProcessIdentity {
  return { pid: process.pid, startedAt: startTimeOf(process.pid) };
}

/** Whether the very process described is still running. */
export function isAlive(identity: ProcessIdentity): boolean {
  try {
    process.kill(identity.pid, 0);
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EPERM';
  }
  return startTimeOf(identity.pid) === identity.startedAt;
}

function startTimeOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in brackets and may hold blanks; the start time is the 22nd.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[19] ?? null;
  } catch {
    return null;
  }
}

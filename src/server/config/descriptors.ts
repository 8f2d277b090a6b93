import { readFileSync } from 'node:fs';

/** File descriptors reserved for everything other than connections: the store, the log, threads, event loops. */
const RESERVED = 128;

/** How many connections each of `threads` threads can hold within the process's limit on file descriptors. */
export function connectionsPerThread(threads: number): number {
  const available = Math.max(RESERVED, descriptorLimit() - RESERVED);
  return Math.max(1, Math.floor(available / threads));
}

function descriptorLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1');
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity);
  } catch {
    // This file exists only on Linux.
    return Infinity;
  }
}

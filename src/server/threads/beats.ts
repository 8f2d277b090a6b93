/**
 * Thread heartbeats: each thread increments a counter in shared memory, on a timer and with each piece of work that it
 * takes from a queue, and a watchdog on a separate thread notices when one stops.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import inspector from 'node:inspector';
import type { LogSettings } from '../../base/log/logger.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { createPeer, endOf, startWorker } from './rpc.ts';

/** How often a thread beats, and how often the watchdog checks. */
export const TICK_MS = 500;

/** How long the authority may be silent before the process is not ready. */
const NOT_READY_TICKS = 4;
/** How long a thread may be silent before the process ends. */
const ENDING_TICKS = 20;

export const AUTHORITY_SLOT = 0;

export interface Beats {
  /** For each thread, a number that changes with each tick; 0 while the thread is not watched. */
  readonly counts: Int32Array;
  /** The number that the system has given to each thread; 0 if it is unknown. */
  readonly threads: Int32Array;
  /** One number: ticks since the authority's last beat, as counted by the watchdog. */
  readonly authoritySilence: Int32Array;
}

export function createBeats(edges: number): Beats {
  return {
    counts: sharedNumbers(1 + edges),
    threads: sharedNumbers(1 + edges),
    authoritySilence: sharedNumbers(1),
  };
}

function sharedNumbers(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));
}

/** The heartbeat of a thread. */
export interface Pulse {
  /** The calling thread is watched from now on. */
  begin(): void;
  /** Call for each piece of work: a thread that comes to the next one does not hang, however many there are. */
  beat(): void;
  end(): void;
}

export function createPulse({ counts, threads }: Beats, slot: number): Pulse {
  let count = 0;
  let beating: NodeJS.Timeout | null = null;

  function beat(): void {
    if (beating === null) return;
    // Never 0, which says that the thread is not watched.
    count = (count % MOST_COUNT) + 1;
    Atomics.store(counts, slot, count);
  }

  return {
    begin() {
      Atomics.store(threads, slot, numberOfThread());
      beating = setInterval(beat, TICK_MS).unref();
      beat();
    },
    beat,
    end() {
      if (beating !== null) clearInterval(beating);
      beating = null;
      Atomics.store(counts, slot, 0);
    },
  };
}

const MOST_COUNT = 2 ** 31 - 1;

/** Only Linux says it. */
function numberOfThread(): number {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return 0;
  }
}

export function isAuthoritySilent({ authoritySilence }: Beats): boolean {
  return Atomics.load(authoritySilence, 0) >= NOT_READY_TICKS;
}

/**
 * Call once per tick; returns the slot of a thread that has been silent for too long, or null. Silence is counted in
 * ticks rather than time, because a suspended process or machine does not tick either. A thread that could run, but
 * gets no processor, is not silent meanwhile.
 */
export function createLook(
  { counts, threads, authoritySilence }: Beats,
  readTime: (thread: number) => ThreadTime | null = threadTime,
): () => number | null {
  const seen = new Int32Array(counts.length);
  const silent = new Float64Array(counts.length);
  const times: (ThreadTime | null)[] = [];

  function silenceOf(slot: number): number {
    const before = times[slot] ?? null;
    const now = readTime(threads[slot] ?? 0);
    times[slot] = now;
    if (before === null || now === null || !now.isRunnable) return 1;
    return Math.min(1, (now.cpuMs - before.cpuMs) / Math.max(1, now.atMs - before.atMs));
  }

  return () => {
    let ended: number | null = null;
    for (let slot = 0; slot < counts.length; slot += 1) {
      const count = Atomics.load(counts, slot);
      const isSilent = count !== 0 && count === seen[slot];
      if (!isSilent) times[slot] = null;
      silent[slot] = isSilent ? (silent[slot] ?? 0) + silenceOf(slot) : 0;
      seen[slot] = count;
      if ((silent[slot] ?? 0) >= ENDING_TICKS) ended ??= slot;
    }
    Atomics.store(authoritySilence, 0, silent[AUTHORITY_SLOT] ?? 0);
    return ended;
  };
}

/** How much a thread has run. */
export interface ThreadTime {
  readonly atMs: number;
  readonly cpuMs: number;
  /** Whether it runs or waits for a processor, and for nothing else. */
  readonly isRunnable: boolean;
}

/** Linux counts the time of threads in hundredths of a second. */
const CLOCK_TICK_MS = 10;

/** Null where the system does not say it. */
function threadTime(thread: number): ThreadTime | null {
  if (thread === 0) return null;
  try {
    const text = readFileSync(`/proc/self/task/${thread}/stat`, 'latin1');
    // The name before these fields is in parentheses, and may contain any characters.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const [user, system] = [Number(fields[11]), Number(fields[12])];
    return {
      atMs: systemRuntime.elapsed(),
      cpuMs: (user + system) * CLOCK_TICK_MS,
      isRunnable: fields[0] === 'R',
    };
  } catch {
    return null;
  }
}

export interface WatchdogSettings {
  readonly beats: Beats;
  readonly log: LogSettings;
}

export type WatchdogProcedures = {
  /** Returns once the watchdog is watching. */
  ready(): void;
};

interface Watchdog {
  /** Resolves once the watchdog is watching. */
  readonly ready: Promise<void>;
  end(): Promise<void>;
}

export type StartWatchdog = (
  settings: WatchdogSettings,
  onFailure: (cause: unknown) => void,
) => Watchdog;

/** For a process that may stop at a breakpoint or shares its threads with other work. */
export const NO_WATCHDOG: Watchdog = { ready: Promise.resolve(), end: () => Promise.resolve() };

/** The watchdog, as seen by the process it watches. */
export const startWatchdog: StartWatchdog = (settings, onFailure) => {
  if (inspector.url() !== undefined) return NO_WATCHDOG;
  const worker = startWorker('watchdog', settings);
  const ended = endOf(worker, onFailure);
  return {
    ready: createPeer<WatchdogProcedures>(worker, {}).call('ready'),
    end() {
      const end = ended.expected();
      void worker.terminate();
      return end;
    },
  };
};

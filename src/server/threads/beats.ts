/**
 * Thread heartbeats: each thread increments a counter in shared memory, and a watchdog on a separate thread notices
 * when one stops.
 */

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
  /** One number: ticks since the authority's last beat, as counted by the watchdog. */
  readonly authoritySilence: Int32Array;
}

export function createBeats(edges: number): Beats {
  return { counts: sharedNumbers(1 + edges), authoritySilence: sharedNumbers(1) };
}

function sharedNumbers(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));
}

/** Watches the calling thread until it calls the returned function. */
export function startBeating({ counts }: Beats, slot: number): () => void {
  let count = 0;
  function beat(): void {
    count += 1;
    Atomics.store(counts, slot, count);
  }
  beat();
  const beating = setInterval(beat, TICK_MS).unref();
  return () => {
    clearInterval(beating);
    Atomics.store(counts, slot, 0);
  };
}

export function isAuthoritySilent({ authoritySilence }: Beats): boolean {
  return Atomics.load(authoritySilence, 0) >= NOT_READY_TICKS;
}

/**
 * Call once per tick; returns the slot of a thread that has been silent for too long, or null. Silence is counted in
 * ticks rather than time, because a suspended process or machine does not tick either.
 */
export function createLook({ counts, authoritySilence }: Beats): () => number | null {
  const seen = new Int32Array(counts.length);
  const silent = new Int32Array(counts.length);

  return () => {
    let ended: number | null = null;
    for (let slot = 0; slot < counts.length; slot += 1) {
      const count = Atomics.load(counts, slot);
      const isSilent = count !== 0 && count === seen[slot];
      silent[slot] = isSilent ? (silent[slot] ?? 0) + 1 : 0;
      seen[slot] = count;
      if ((silent[slot] ?? 0) >= ENDING_TICKS) ended ??= slot;
    }
    Atomics.store(authoritySilence, 0, silent[AUTHORITY_SLOT] ?? 0);
    return ended;
  };
}

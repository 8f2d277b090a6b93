/**
 * Signs of life: each thread counts up in memory that all threads see, and a watchdog on a thread of its own
 * notices which of them has stopped.
 */

/** How often a thread beats, and how often the watchdog looks. */
export const TICK_MS = 500;

/** Silence of the authority after which nobody is to send work here. */
const NOT_READY_TICKS = 4;
/** Silence of a thread after which the process ends. */
const ENDING_TICKS = 20;

export const AUTHORITY_SLOT = 0;

export interface Beats {
  /** Of each thread a number that changes with each tick; 0 while it is not watched. */
  readonly counts: Int32Array;
  /** One number: for how many ticks the authority has not beaten, as the watchdog sees it. */
  readonly authoritySilence: Int32Array;
}

export function createBeats(edges: number): Beats {
  return { counts: sharedNumbers(1 + edges), authoritySilence: sharedNumbers(1) };
}

function sharedNumbers(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));
}

/** Has the thread that calls this watched, until it calls what is returned. */
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
 * Looks once per tick; returns the slot of a thread that has been silent for too long, else null. Silence is
 * counted in looks and not in time: while the whole process or machine is suspended, nobody looks either.
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

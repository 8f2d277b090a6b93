/**
 * Looks for damage in the stored state while it is served: part after part, in processes of their own. The service
 * goes on meanwhile, because it decides by what it has read, and checked, at its start.
 */
import type { ScrubbedPart, ScrubPlace } from '../../store/scrub.ts';
import { EndedApart } from '../threads/apart.ts';

export interface ScrubOptions {
  /** Reads the part that begins there. */
  read(from: ScrubPlace | null): Promise<ScrubbedPart>;
  /** Called for each damage that is found for the first time. */
  found(what: string): void;
  /** Called after each part: how much is damaged, as far as that is known. */
  counted(damaged: number): void;
  /** All of the state was read. */
  completed(): void;
  readonly abort: AbortSignal;
}

export interface Scrub {
  /** Reads the next part; rejects when it could not be read for another reason than damage. */
  check(): Promise<void>;
  /** Damage found in the last reading of the whole state, or since. */
  readonly damaged: number;
}

export function createScrub({ read, found, counted, completed, abort }: ScrubOptions): Scrub {
  let place: ScrubPlace | null = null;
  let earlier: ReadonlySet<string> = new Set();
  let current = new Set<string>();

  const damaged = () => Math.max(earlier.size, current.size);

  function take({ damaged: sentences, next }: ScrubbedPart): void {
    for (const what of sentences) {
      if (!earlier.has(what) && !current.has(what)) found(what);
      current.add(what);
    }
    place = next;
    if (next === null) {
      earlier = current;
      current = new Set();
      completed();
    }
    counted(damaged());
  }

  return {
    async check() {
      try {
        take(await read(place));
      } catch (cause) {
        if (abort.aborted) return;
        if (!(cause instanceof EndedApart) || !isCrash(cause)) throw cause;
        take({ rows: 0, damaged: [`the database cannot be read (${cause.signal})`], next: null });
      }
    },
    get damaged() {
      return damaged();
    },
  };
}

/** How a process ends that follows what a damaged page says. */
function isCrash({ signal }: EndedApart): boolean {
  return signal === 'SIGSEGV' || signal === 'SIGBUS';
}

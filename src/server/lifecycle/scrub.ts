/**
 * Scans the stored state for damage while the service runs, one part at a time, each in a child process. The service
 * itself is not affected by damage, because it decides from memory, which was read and checked at startup.
 */
import type { ScrubbedPart, ScrubPlace } from '../../store/scrub.ts';
import { EndedApart } from '../threads/apart.ts';

export interface ScrubOptions {
  /** Reads the part that begins at `from`. */
  read(from: ScrubPlace | null): Promise<ScrubbedPart>;
  /** Called once for each newly found damage. */
  found(what: string): void;
  /** Called after each part with the amount of known damage. */
  counted(damaged: number): void;
  /** Called when the whole state has been read. */
  completed(): void;
  readonly abort: AbortSignal;
}

export interface Scrub {
  /** Reads the next part; rejects if that fails for a reason other than damage. */
  check(): Promise<void>;
  /** The amount of damage found in the last complete pass, or since. */
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

/** Whether the process crashed, as it does when it follows a pointer in a damaged page. */
function isCrash({ signal }: EndedApart): boolean {
  return signal === 'SIGSEGV' || signal === 'SIGBUS';
}

/** When the dashboard is made again: only once what it shows has changed, and not too often. */
import { setTimeout } from 'node:timers/promises';
import type { Runtime } from '../../runtime.ts';
import type { SealedEntry, SubjectWrite } from '../../store/store.ts';
import { isShown } from '../../views/recent-changes.ts';

/** Kinds of subjects whose changes the dashboard shows. */
const SHOWN_KINDS: ReadonlySet<string> = new Set([
  'certificate',
  'recognition-treaty',
  'revocation-feed',
]);

/** Refusals alone, above all, change nothing of it: strangers cause those. */
export function changesDashboard(
  writes: readonly SubjectWrite[],
  audit: readonly SealedEntry[],
): boolean {
  return (
    writes.some(({ kind }) => SHOWN_KINDS.has(kind)) ||
    audit.some(
      ({ entry }) => isShown(entry.event_type) || entry.event_type === 'trust_cycle_completed',
    )
  );
}

/** Most a reader waits, in milliseconds: the dashboard of a large network is made twice a second. */
const LONGEST_PAUSE = 500;
/** A pause is this many times as long as the build before it, so that builds take a twentieth of the time. */
const PAUSE_PER_BUILD = 20;

/** Keeps builds of the dashboard apart, however often it changes and whoever asks. */
export interface DashboardPace {
  /** Builds at once, or when the pause after the last build is over; a promise then. */
  take(build: () => void): Promise<void> | undefined;
}

export function createDashboardPace({ elapsed }: Pick<Runtime, 'elapsed'>): DashboardPace {
  let nextFrom = 0;
  let waiting: Promise<void> | null = null;

  function run(build: () => void): void {
    const started = elapsed();
    build();
    const ended = elapsed();
    nextFrom = ended + Math.min(LONGEST_PAUSE, PAUSE_PER_BUILD * (ended - started));
  }

  return {
    take(build) {
      if (waiting !== null) return waiting;
      const pause = nextFrom - elapsed();
      if (pause <= 0) {
        run(build);
        return undefined;
      }
      waiting = setTimeout(pause).then(() => {
        waiting = null;
        run(build);
      });
      return waiting;
    },
  };
}

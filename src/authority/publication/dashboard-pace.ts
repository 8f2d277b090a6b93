/** Paces builds of the dashboard: only after what it shows has changed, and not too often. */
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

/** Refusals in particular do not change it, because strangers can cause them. */
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

/**
 * The longest wait of a reader, in milliseconds: the dashboard of a large network is built twice a second.
 */
const LONGEST_PAUSE = 500;
/** A pause is this many times as long as the previous build, so that builds take a twentieth of the time. */
const PAUSE_PER_BUILD = 20;

/** Spaces builds of the dashboard out, however often it changes or is requested. */
export interface DashboardPace {
  /** Builds at once, or, as a promise, when the pause after the last build is over. */
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

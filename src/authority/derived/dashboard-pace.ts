/** Paces builds of the dashboard: only after what it shows has changed, and not too often. */
import { setTimeout } from 'node:timers/promises';
import type { Runtime } from '../../base/runtime.ts';
import { createPauses, createSharedWork } from '../../base/work.ts';
import type { SealedEntry, SubjectWrite } from '../../store/store.ts';
import { isShown } from '../views/recent-changes.ts';

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
  /**
   * Builds at once, or when the pause after the last build is over, or joins the build that is coming. A
   * build that takes a while returns a promise, and reads what it publishes last.
   */
  take(build: () => Promise<void> | undefined): Promise<void> | undefined;
}

export function createDashboardPace(elapsed: Runtime['elapsed']): DashboardPace {
  const builds = createSharedWork();
  const pauses = createPauses(elapsed, { perWork: PAUSE_PER_BUILD, longestMs: LONGEST_PAUSE });

  function run(build: () => Promise<void> | undefined): Promise<void> | undefined {
    const began = elapsed();
    const building = build();
    if (building !== undefined) return building.finally(() => pauses.after(began));
    pauses.after(began);
    return undefined;
  }

  return {
    take: (build) =>
      builds.share(() => {
        const pause = pauses.left();
        return pause <= 0 ? run(build) : setTimeout(pause).then(() => run(build));
      }),
  };
}

/** Limits how often the dashboard is rebuilt: only after something it shows has changed, and not too often. */
import { setTimeout } from 'node:timers/promises';
import type { Runtime } from '../../base/runtime.ts';
import { createPauses, createSharedWork } from '../../base/work.ts';

/** The longest a reader waits, in milliseconds: the dashboard of a large network is built twice a second. */
const LONGEST_PAUSE = 500;
/** Each pause is this many times as long as the build before it, so that builds use a twentieth of the time. */
const PAUSE_PER_BUILD = 20;

/** Spaces out builds of the dashboard, no matter how often it changes or is requested. */
export type DashboardPace = ReturnType<typeof createDashboardPace>;

export function createDashboardPace(elapsed: Runtime['elapsed']) {
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
    /**
     * Builds immediately, or after the pause that follows the last build, or joins a build that is already scheduled.
     * A build that takes a while must return a promise, and must read the values that it publishes last.
     */
    take: (build: () => Promise<void> | undefined): Promise<void> | undefined =>
      builds.share(() => {
        const pause = pauses.left();
        return pause <= 0 ? run(build) : setTimeout(pause).then(() => run(build));
      }),
  };
}

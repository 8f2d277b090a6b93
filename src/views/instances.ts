/** The instances that answer together, as the one that writes knows them [core-6-5]. */
import { compareCodePoints } from '../json/write.ts';
import type { DashboardInstance } from './rows/dashboard.ts';

/** A follower that is linked; `lag` in revisions, null while it keeps no state ready. */
interface Follower {
  readonly instance: string;
  readonly lag: number | null;
}

/** The writer first, then the others by id. */
export function instanceRows(writer: string, followers: readonly Follower[]): DashboardInstance[] {
  const others = followers.toSorted((a, b) => compareCodePoints(a.instance, b.instance));
  return [
    { instance: writer, role: 'writer', lag_revisions: 0 },
    ...others.map(
      ({ instance, lag }): DashboardInstance => ({
        instance,
        role: 'follower',
        lag_revisions: lag,
      }),
    ),
  ];
}

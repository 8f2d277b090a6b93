/** The instances that answer together, as the one that writes knows them [core-6-5]. */

import { compareCodePoints } from '../../base/json/write.ts';
import type { LinkedFollower } from '../../protocol/contract/instance-status.ts';
import type { DashboardInstance } from '../../protocol/rows/dashboard.ts';

/** The writer first, then the others by id. */
export function instanceRows(
  writer: string,
  followers: readonly LinkedFollower[],
): DashboardInstance[] {
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

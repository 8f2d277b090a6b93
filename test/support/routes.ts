/** Walks over the route table. */

import { REFUSALS } from '../../src/base/refusal.ts';
import type { RouteDescription } from '../../src/protocol/route-description.ts';

/**
 * In the order in which the examples of all routes can be sent to one new authority: first those that are refused
 * because something is missing, then those that write, last those that read what was written.
 */
export function inExampleOrder<Route>(
  routes: readonly Route[],
  { method, isRefused }: { method(route: Route): string; isRefused(route: Route): boolean },
): Route[] {
  const turn = (route: Route) => (isRefused(route) ? 0 : method(route) === 'GET' ? 2 : 1);
  return [...routes].sort((one, other) => turn(one) - turn(other));
}

/** The refusal of the example by an authority that holds nothing yet; undefined where it succeeds. */
export function exampleRefusal({ exampleNeeds }: RouteDescription): string | undefined {
  if (exampleNeeds === undefined) return undefined;
  const { status, code } = REFUSALS[exampleNeeds.otherwise];
  return `${status} ${code}`;
}

/** Helpers for tests that cover the route table. */

import { REFUSALS } from '../../src/protocol/refusals.ts';
import type { RouteDescription } from '../../src/protocol/route-description.ts';

/**
 * Sorts routes so that their examples can all be sent to one new authority: first those that are refused because
 * something is missing, then those that write, and last those that read what was written.
 */
export function inExampleOrder<Route>(
  routes: readonly Route[],
  { method, isRefused }: { method(route: Route): string; isRefused(route: Route): boolean },
): Route[] {
  const turn = (route: Route) => (isRefused(route) ? 0 : method(route) === 'GET' ? 2 : 1);
  return [...routes].sort((one, other) => turn(one) - turn(other));
}

/** The refusal of the example by an authority without any content; undefined if the example succeeds. */
export function exampleRefusal({ exampleNeeds }: RouteDescription): string | undefined {
  if (exampleNeeds === undefined) return undefined;
  const { status, code } = REFUSALS[exampleNeeds.otherwise];
  return `${status} ${code}`;
}

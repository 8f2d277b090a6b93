import type { Edge } from '../edge.ts';
import type { Request } from './route.ts';

/** Whether another instance must answer, because this one is not active. */
export function isAnsweredElsewhere(
  { instanceStatus }: Edge,
  { isRefused, route, params }: Request,
): boolean {
  if (instanceStatus === null || instanceStatus.isActive() || isRefused) return false;
  return !route?.isOwn || route.knows?.(params) === false;
}

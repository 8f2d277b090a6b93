import type { Edge } from '../edge.ts';
import type { Request } from './route.ts';

/** Whether another instance must answer, because this one is not active. */
export function isAnsweredElsewhere(
  { instanceStatus }: Edge,
  { isRefused, route }: Request,
): boolean {
  return instanceStatus !== null && !instanceStatus.isActive() && !isRefused && !route?.isOwn;
}

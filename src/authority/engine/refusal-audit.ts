/** Audits refusals of unauthenticated callers, within the limits of the refusal counter. */

import type { RefusalDetails, RefusalEvent } from '../audit/refusal-counter.ts';
import type { Authority } from '../authority.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { Run } from './execute.ts';

/** Counts a refusal, and audits it unless its source has exceeded the limit for single entries. */
export function auditRefusal(
  na: Authority,
  unit: UnitOfWork,
  event: RefusalEvent,
  details: RefusalDetails,
): void {
  na.countRefusal(event, details.reason);
  if (na.refusals.isSingle(event, details)) unit.audit(event, details);
}

/** Writes the summaries that are due. */
export const summarizeRefusals: Run<{ readonly all: boolean }> = (na, unit, { all }) => {
  for (const { event, reason, remoteAddr, count } of na.refusals.takeSummaries(all)) {
    unit.audit('refusals_summarized', { event, reason, remote_addr: remoteAddr, count });
  }
  return null;
};

import type { Handler } from '../engine/admission.ts';

/** Makes the published bulletin current. */
export const refreshBulletin: Handler<'refreshBulletin'> = (na, unit) => {
  na.bulletin.keepCurrent(unit.at);
  return null;
};

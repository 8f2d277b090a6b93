/** How far the audit log was posted to each webhook [events-5]. No change of it is audited: that would be posted, too. */
import type { Handler } from '../engine/admission.ts';

/** Adds the new webhooks, forgets those that are gone, and answers where each stands. */
export const openWebhooks: Handler<'openWebhooks'> = (na, unit, { ids, after }) => {
  for (const [id] of na.subjects.allCommitted('webhook')) {
    if (!ids.includes(id)) unit.remove('webhook', id);
  }
  const end = na.eventTail.length();
  for (const id of ids) {
    if (unit.current('webhook', id) !== undefined) continue;
    unit.send('webhook', id, { type: 'begin', after: Math.min(after ?? end, end) });
  }
  return Object.fromEntries(ids.map((id) => [id, unit.existing('webhook', id).delivered]));
};

export const saveWebhooks: Handler<'saveWebhooks'> = (_na, unit, cursors) => {
  for (const [id, index] of Object.entries(cursors)) {
    if (index > unit.existing('webhook', id).delivered) {
      unit.send('webhook', id, { type: 'deliver', index });
    }
  }
  return null;
};

/**
 * The audit log as events. Edges read them in parts [events-2], and may wait for events that have not happened yet;
 * webhooks receive them [events-5].
 */
import { JsonText } from '../base/json/write.ts';
import { Refusal } from '../protocol/refusals.ts';
import { eventText } from './audit/audit-tail.ts';
import type { Authority } from './authority.ts';
import type { Handler } from './engine/admission.ts';
import { AsyncResult } from './engine/execute.ts';

/** A part ends early once its text is longer than this. */
const MOST_CHARACTERS = 32 * 1024;

/** Admits a reader; returns the length of the log. */
export const openEvents: Handler<'openEvents'> = (na, { after: given }) => {
  const after = given ?? 0;
  const length = na.eventTail.length();
  if (after > length) throw new Refusal('after_ahead', { log_size: length });
  return { log_size: length };
};

/** The events after an entry, one per line; empty if there are none. */
export const readEvents: Handler<'readEvents'> = (na, { after, most, waits }) => {
  const { eventTail } = na;
  if (after < eventTail.length()) return eventsAfter(na, after, most);
  if (!waits) return new JsonText('');
  return new AsyncResult(eventTail.next().then(() => linesOf(eventTail.after(after, most) ?? [])));
};

function eventsAfter({ eventTail, store }: Authority, after: number, most: number) {
  const held = eventTail.after(after, most);
  if (held !== null) return linesOf(held);
  // The store may return entries that are not settled yet, which must not be sent.
  const settled = Math.min(most, eventTail.length() - after);
  return new AsyncResult(
    store.auditAfter(after, settled).then((lines) => linesOf(events(after, lines))),
  );
}

function events(after: number, lines: readonly string[]): string[] {
  return lines.map((line, index) => {
    const textAt = line.indexOf('{');
    return eventText(after + index + 1, line.slice(0, textAt), line.slice(textAt));
  });
}

function linesOf(made: readonly string[]): JsonText {
  let characters = 0;
  const end = made.findIndex((text) => {
    characters += text.length;
    return characters > MOST_CHARACTERS;
  });
  return new JsonText(made.slice(0, end < 0 ? made.length : end + 1).join('\n'));
}

/** Adds new webhooks, removes the ones that are no longer configured, and returns the position of each. */
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

/** Saves how far the log was posted. This is not audited, because the audit entries would be posted as well. */
export const saveWebhooks: Handler<'saveWebhooks'> = (_na, unit, cursors) => {
  for (const [id, index] of Object.entries(cursors)) {
    if (index > unit.existing('webhook', id).delivered) {
      unit.send('webhook', id, { type: 'deliver', index });
    }
  }
  return null;
};

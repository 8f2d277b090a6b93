/** Events as the edges read them [events-2]: the audit log in parts, from any entry on, also before it happens. */
import { JsonText } from '../../base/json/write.ts';
import { Refusal } from '../../base/refusal.ts';
import { eventText } from '../derived/event-tail.ts';
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import { AsyncResult } from '../engine/execute.ts';

/** Larger parts end early, by the length of their text. */
const MOST_CHARACTERS = 32 * 1024;

/** Admits a reader: it says how long the log is. */
export const openEvents: Handler<'openEvents'> = (na, { after }) => {
  const length = na.eventTail.length();
  if (after > length) throw new Refusal('after_ahead', { log_size: length });
  return { log_size: length };
};

/** The events after an entry, each a line; none when there are none. */
export const readEvents: Handler<'readEvents'> = (na, { after, most, waits }) => {
  const { eventTail } = na;
  if (after < eventTail.length()) return eventsAfter(na, after, most);
  if (!waits) return new JsonText('');
  return new AsyncResult(eventTail.next().then(() => linesOf(eventTail.after(after, most) ?? [])));
};

function eventsAfter({ eventTail, store }: Authority, after: number, most: number) {
  const held = eventTail.after(after, most);
  if (held !== null) return linesOf(held);
  // What is not yet settled may be read, but must not be sent.
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

/** Entries of the audit log in tables. */
import type { JsonValue } from '../base/json/value.ts';
import { canonicalJson } from '../base/json/write.ts';
import type { LoggedEvent } from '../client/event-chain.ts';
import { type Html, html } from '../pages/ui/html.ts';
import { table } from '../pages/ui/table.ts';
import { exactTime } from '../pages/ui/values.ts';
import type { Context } from './context.ts';

export function entriesTable(id: string, caption: string, rows: readonly LoggedEvent[]): Html {
  return table({
    id,
    caption,
    keyOf: ({ index }) => String(index),
    rows,
    columns: [
      { head: 'Entry', cell: ({ index }) => index, kind: 'number', isHead: true },
      { head: 'Time', cell: ({ entry }) => exactTime(entry.created_at) },
      { head: 'Event', kind: 'wide', cell: ({ entry }) => entry.event_type },
      { head: 'Operator', kind: 'operator', cell: ({ entry }) => entry.actor_key_id ?? '' },
      { head: 'Details', kind: 'wide', cell: ({ entry }) => members(entry) },
    ],
  });
}

/** Each member of the details can be read and copied by itself. */
function members({ details }: LoggedEvent['entry']): Html {
  return html`<span class="members">${Object.entries(details).map(
    ([name, value]) =>
      html`<span><span class="small muted">${name}</span> <code><bdi>${typeof value === 'string' ? value : canonicalJson(value as JsonValue)}</bdi></code></span>`,
  )}</span>`;
}

export function detailsText({ details }: LoggedEvent['entry']): string {
  return canonicalJson(details as JsonValue);
}

/** How far back a page looks: the whole log can have millions of entries. */
export const ENTRIES_LOOKED_AT = 2000;
const MOST_FOUND = 50;

/** The newest entries that name one of the ids, newest first, among the last of the log. */
export async function recentEntriesOf(
  context: Context,
  ids: readonly string[],
): Promise<LoggedEvent[]> {
  const found: LoggedEvent[] = [];
  for await (const event of lastEntries(context)) {
    const text = detailsText(event.entry);
    if (ids.some((id) => text.includes(`"${id}"`))) found.push(event);
  }
  return found.slice(-MOST_FOUND).reverse();
}

/** When each operator last changed something, among the last of the log. */
export async function lastActs(context: Context): Promise<ReadonlyMap<string, string>> {
  const acts = new Map<string, string>();
  for await (const { entry } of changesOf(context)) {
    acts.set(entry.actor_key_id ?? '', entry.created_at);
  }
  return acts;
}

/** The newest changes by operators, newest first, among the last of the log. */
export async function lastChanges(context: Context, most: number): Promise<LoggedEvent[]> {
  const found: LoggedEvent[] = [];
  for await (const event of changesOf(context)) found.push(event);
  return found.slice(-most).reverse();
}

const REFUSED = /_(rejected|failed|denied)$/;

/** What operators changed, and not what they were refused. */
async function* changesOf(context: Context): AsyncGenerator<LoggedEvent, void> {
  for await (const event of lastEntries(context)) {
    const { actor_key_id: actor, event_type: type } = event.entry;
    if (actor !== undefined && !REFUSED.test(type)) yield event;
  }
}

async function* lastEntries(context: Context): AsyncGenerator<LoggedEvent, void> {
  const { after } = await reachOf(context);
  // Also what was logged since the bulletin was issued.
  yield* entriesIn(context, { after, last: Infinity });
}

/** Entries of the log: those after an index, up to another one. */
export interface LogReach {
  readonly after: number;
  readonly last: number;
}

/** As many entries as a page looks at, up to this index; the newest ones unless it is given. */
export async function reachOf({ publicClient }: Context, upTo = Infinity): Promise<LogReach> {
  const { log_size: size } = await publicClient.readBulletin();
  const last = Math.min(upTo, size);
  return { after: Math.max(0, last - ENTRIES_LOOKED_AT), last };
}

export async function* entriesIn(
  { client }: Context,
  { after, last }: LogReach,
): AsyncGenerator<LoggedEvent, void> {
  if (last === after) return;
  for await (const event of client.events({ after, follow: false })) {
    yield event;
    if (event.index >= last) return;
  }
}

/** Entries of the audit log in tables. */

import { shownCount } from '../base/counts.ts';
import type { JsonObject } from '../base/json/value.ts';
import { canonicalJson } from '../base/json/write.ts';
import { isChange, type LoggedEvent } from '../client/events.ts';
import { nodeNames } from '../client/nodes.ts';
import { type Html, html, NO_HTML } from '../pages/ui/html.ts';
import { table } from '../pages/ui/table.ts';
import { exactTime, nameInFull } from '../pages/ui/values.ts';
import {
  type AuditSaid,
  byRequest,
  createEntryNames,
  type NamedEntry,
  sentenceOf,
} from '../protocol/audit-sentence.ts';
import type { Context } from './context.ts';

/** An entry of the log, with the names of what it is about. */
export interface NamedEvent extends NamedEntry<LoggedEvent['entry'] & AuditSaid> {
  readonly index: number;
}

/** Entries that are one sentence, in the order of the log. */
export type Happening = readonly [NamedEvent, ...NamedEvent[]];

/** The same with the names that nodes have now, the newest first. */
export async function newestFirst(
  { client }: Context,
  log: readonly Happening[],
): Promise<Happening[]> {
  await nodeNames(client)(log.flat());
  return log.toReversed();
}

export function entriesTable(id: string, caption: string, rows: readonly Happening[]): Html {
  return table({
    id,
    caption,
    keyOf: ([{ index }]) => String(index),
    rows,
    columns: [
      { head: 'Entry', cell: numbersOf, kind: 'number', isHead: true },
      { head: 'Time', cell: ([{ entry }]) => exactTime(entry.created_at) },
      { head: 'Event', kind: 'wide', cell: happeningCell },
    ],
  });
}

function numbersOf([first, ...others]: Happening): string {
  const last = others.at(-1);
  return last === undefined ? String(first.index) : `${first.index}–${last.index}`;
}

function happeningCell(rows: Happening): Html {
  const [{ entry, names }, ...others] = rows;
  const sentence = sentenceOf(
    entry,
    { nameOf: (id) => names.get(id), short: shortId },
    others.map((other) => other.entry),
  );
  const left = rows.length - MOST_IN_FULL;
  return html`<div><bdi>${nameInFull(sentence)}</bdi>
<details class="small"><summary>${entry.event_type}</summary>${rows.slice(0, MOST_IN_FULL).map(members)}${left > 0 ? html`<p class="muted">And ${shownCount(left)} more like these.</p>` : NO_HTML}</details></div>`;
}

/** Of the invites of one request. */
const MOST_IN_FULL = 20;

const LONGEST_ID = 24;

function shortId(id: string): string {
  return id.length > LONGEST_ID ? id.slice(0, 8) : id;
}

/** Each member of the details can be read and copied by itself. */
function members({ entry: { details } }: NamedEvent): Html {
  return html`<p class="members">${Object.entries(details).map(
    ([name, value]) =>
      html`<span><span class="muted">${name}</span> <code><bdi>${typeof value === 'string' ? value : canonicalJson(value)}</bdi></code></span>`,
  )}</p>`;
}

export function detailsText({ details }: NamedEvent['entry']): string {
  return canonicalJson(details);
}

/** How far back a page looks: the whole log can have millions of entries. */
export const ENTRIES_LOOKED_AT = 2000;
const MOST_FOUND = 50;

/** The newest entries that name one of the ids, newest first, among the last of the log. */
export async function recentEntriesOf(
  context: Context,
  ids: readonly string[],
): Promise<Happening[]> {
  const found: NamedEvent[] = [];
  for await (const event of lastEntries(context)) {
    const text = detailsText(event.entry);
    if (ids.some((id) => text.includes(`"${id}"`))) found.push(event);
  }
  return newestFirst(context, byRequest(found.slice(-MOST_FOUND)));
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
export async function lastChanges(context: Context, most: number): Promise<Happening[]> {
  const found: NamedEvent[] = [];
  for await (const event of changesOf(context)) found.push(event);
  return newestFirst(context, byRequest(found).slice(-most));
}

/** What operators changed, and not what they were refused. */
async function* changesOf(context: Context): AsyncGenerator<NamedEvent, void> {
  for await (const event of lastEntries(context)) {
    if (isChange(event.entry)) yield event;
  }
}

async function* lastEntries(context: Context): AsyncGenerator<NamedEvent, void> {
  const { after } = await reachOf(context);
  // Also what was logged since the bulletin was issued.
  yield* entriesIn(context, { after, last: Infinity });
}

/** As many entries as a page looks at, up to this index; the newest ones unless it is given. */
export async function reachOf({ publicClient }: Context, upTo = Infinity) {
  const { log_size: size } = await publicClient.readBulletin();
  const last = Math.min(upTo, size);
  return { after: Math.max(0, last - ENTRIES_LOOKED_AT), last };
}

/** Entries of the log: those after an index, up to another one. */
export async function* entriesIn(
  { client }: Context,
  { after, last }: Awaited<ReturnType<typeof reachOf>>,
): AsyncGenerator<NamedEvent, void> {
  if (last === after) return;
  yield* named(client.events({ after, follow: false }), last);
}

/** Each event, up to this index, with the names that earlier ones say. */
export async function* named(
  events: AsyncIterable<LoggedEvent>,
  last = Infinity,
): AsyncGenerator<NamedEvent, void> {
  const withNames = createEntryNames();
  for await (const { entry, index } of events) {
    yield { ...withNames({ ...entry, details: entry.details as JsonObject }), index };
    if (index >= last) return;
  }
}

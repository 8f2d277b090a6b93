/** `mesh-na events`, and how entries of the audit log are shown: a sentence each, whose words are those of the console. */

import { type Command, InvalidArgumentError } from 'commander';
import { fromNow, inWords } from '../../base/duration.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import { EventChainError, type LoggedEvent } from '../../client/events.ts';
import { idsOfNode, nodeNames } from '../../client/nodes.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import {
  type AuditSaid,
  areOneRequest,
  createEntryNames,
  type NamedEntry,
  sentenceOf,
} from '../../protocol/audit-sentence.ts';
import { AUDIT_EVENTS, type AuditEvent } from '../../protocol/rows/audit-event.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { publicClient } from '../connection/server.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { EXIT, failure } from '../kernel/errors.ts';
import { isNamedBy, shortForms } from '../kernel/ids.ts';
import { timeAgo, wholeNumber } from '../kernel/options.ts';
import {
  asJson,
  type Line,
  painted,
  printable,
  printableJson,
  printNotice,
  printResult,
  printText,
  type Style,
  wrapped,
} from '../kernel/output.ts';
import type { TableOptions } from '../kernel/table.ts';
import { stopSignal } from '../service/stop-request.ts';

const DETAILS = option('--details', 'also show the details of each entry');

interface EntryOptions extends TableOptions {
  readonly details?: boolean;
}

/** An entry with what stands before it, such as its index. */
export interface Shown extends NamedEntry {
  readonly before?: string;
}

/** Whether each entry is a line by itself with everything in full, as in a pipe. */
function isPlain({ wide = false }: EntryOptions): boolean {
  return wide || !process.stdout.isTTY;
}

/** Groups of entries that are shown as one: on a terminal, the invites of one request. */
export async function* groupsOf(
  entries: AsyncIterable<Shown>,
  options: EntryOptions & { readonly follow?: boolean },
): AsyncGenerator<readonly Shown[], void> {
  const isSingle = isPlain(options) || options.details === true || options.follow === true;
  let group: Shown[] = [];
  for await (const shown of entries) {
    const [first] = group;
    if (first !== undefined && (isSingle || !areOneRequest(first.entry, shown.entry))) {
      yield group;
      group = [];
    }
    group.push(shown);
    if (isSingle) {
      yield group;
      group = [];
    }
  }
  if (group.length > 0) yield group;
}

/**
 * One line in a pipe, with full ids and timestamps. On a terminal, ids are short, times relative, and what is longer
 * than a line goes on below the sentence.
 */
export function entryLines([first, ...others]: readonly Shown[], options: EntryOptions): Line[] {
  if (first === undefined) return [];
  const { entry, names, before = '' } = first;
  const { created_at, event_type, details } = entry;
  const nameOf = (id: string) => names.get(id);
  const rest = others.map((other) => other.entry);
  if (isPlain(options)) {
    const sentence = sentenceOf(entry, { nameOf, short: (id) => id }, rest);
    const more = options.details ? `  ${printableJson(details)}` : '';
    return [`${before}${created_at}  ${event_type}  ${sentence}${more}`];
  }
  const time = fromNow((parseRequestTimestamp(created_at) ?? 0) - systemRuntime.now());
  const start = printable(`${before}${time.padEnd(TIME_WIDTH)}  `);
  const sentence = printable(sentenceOf(entry, { nameOf, short: shortId }, rest));
  const style = styleOf(event_type);
  const paint = (text: string) => (style === null ? text : painted(style, text, process.stdout));
  const lines = belowEachOther(sentence, start.length).map((line, index) => ({
    styled: (index === 0 ? start : ' '.repeat(start.length)) + paint(line),
  }));
  if (!options.details) return lines;
  const about = printable(`${event_type}  ${membersOf(details)}`);
  const below = belowEachOther(about, start.length);
  return [...lines, ...below.map((line) => ' '.repeat(start.length) + line)];
}

/** Wide enough for most values, so that most lines are aligned. */
const TIME_WIDTH = '119m ago'.length;

/** Lines that fit to the right of an indent. */
function belowEachOther(text: string, indent: number): string[] {
  const { isTTY, columns } = process.stdout;
  return wrapped(text, { isTTY, columns: columns - indent }, 0);
}

function shortId(id: string): string {
  return shortForms([id]).get(id) ?? id;
}

function styleOf(eventType: string): Style | null {
  if (/_(?:failed|denied|rejected|compromised)$/.test(eventType)) return 'red';
  return /_(?:revoked|withdrawn)$/.test(eventType) ? 'yellow' : null;
}

function membersOf(details: JsonObject): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}=${memberText(value)}`)
    .join('  ');
}

function memberText(value: JsonValue): string {
  return typeof value === 'string' && !/\s/.test(value) ? value : canonicalJson(value);
}

export const EVENT_FILTERS = [
  WIDE,
  DETAILS,
  option('--actor <key-id>', 'only events caused by this operator key'),
  eventTypes(),
  option(
    '--subject <id>',
    'only events about this certificate, key, treaty or other id (a prefix is enough), or about the node of this name',
  ),
  option('--since <time>', 'only events since this time, or within a duration such as 7d', {
    parse: instant,
  }),
  option('--until <time>', 'only events before this time, or up to a duration ago', {
    parse: instant,
  }),
] as const;

/** A newer authority may log other types, which this filter does not support. */
function eventTypes() {
  const about = 'only events of this type (repeatable)';
  const made = option('--type <event>', about, { parse: eventType, many: true });
  made.argChoices = [...AUDIT_EVENTS];
  return made;
}

function eventType(text: string): AuditEvent {
  const type = AUDIT_EVENTS.find((name) => name === text);
  if (type !== undefined) return type;
  throw new InvalidArgumentError(`The types of events are ${AUDIT_EVENTS.join(', ')}.`);
}

const EVENTS = [
  option('--follow', 'wait for new events, reconnecting as needed, until interrupted'),
  option(
    '--after <index>',
    'start after the event with this index (default: 0, or the last event with --follow)',
    { parse: wholeNumber(undefined, 0) },
  ),
  ...EVENT_FILTERS,
] as const;

type EventsOptions = OptionsIn<typeof EVENTS> & OperatorOptions;

export function addEventsCommand(program: Command): void {
  define(program, 'events', {
    about: 'show past events, or new ones with --follow, verifying the audit log (standard)',
    asks: OPERATOR,
    options: EVENTS,
    examples: [
      'mesh-na events --type certificate_revoked',
      'mesh-na events --subject 5a1f6e0c --since 7d',
      'mesh-na events --follow',
      'mesh-na events --follow --after 0 --json | jq -c .entry',
    ],
    run: showEvents,
  });
}

async function showEvents(options: EventsOptions): Promise<void> {
  const { follow = false, json = false } = options;
  const signal = stopSignal();
  const client = operatorClient(options);
  const isWanted = eventTest(options, await idsOfNode(client, options.subject ?? ''));
  const after = await firstIndex(options);
  const events = client.events({
    follow,
    after,
    signal,
    onLost: ({ message }, ms) =>
      printNotice(`${message}; trying again in ${inWords(Math.ceil(ms / 1000))}`),
  });
  if (!json) {
    const shown = shownOf(verified(events), isWanted, after === 0 ? null : nodeNames(client));
    for await (const group of groupsOf(shown, options)) printText(entryLines(group, options));
    return;
  }
  const kept: JsonObject[] = [];
  for await (const event of verified(events)) {
    if (!isWanted(entryOf(event))) continue;
    // Print a single object, unless the list never ends.
    if (follow) printResult(options, asJson(event), []);
    else kept.push(asJson(event));
  }
  if (!follow) printResult(options, { events: kept }, []);
}

/** The entries that are wanted; `ask` adds the names that were said before the first one. */
async function* shownOf(
  events: AsyncIterable<LoggedEvent>,
  isWanted: (entry: AuditSaid) => boolean,
  ask: ReturnType<typeof nodeNames> | null,
): AsyncGenerator<Shown, void> {
  const named = createEntryNames();
  for await (const event of events) {
    const shown = { ...named(entryOf(event)), before: `${event.index}  ` };
    if (!isWanted(shown.entry)) continue;
    await ask?.([shown]);
    yield shown;
  }
}

export function entryOf({ entry }: LoggedEvent): AuditSaid {
  return { ...entry, details: asJson(entry.details) };
}

async function* verified<T>(events: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* events;
  } catch (error) {
    if (!(error instanceof EventChainError)) throw error;
    throw failure(EXIT.refused, error.problem, error.message);
  }
}

/** The whole log of an authority, as its operators read it. */
export async function* entriesOf(
  client: OperatorClient,
): AsyncGenerator<AuditSaid & { readonly hash: string }, void> {
  for await (const event of verified(client.events({ follow: false, after: 0 }))) {
    yield { ...entryOf(event), hash: event.hash };
  }
}

/** With `--follow`, start with new events. */
async function firstIndex(options: EventsOptions): Promise<number> {
  const { follow = false, after } = options;
  if (after !== undefined || !follow) return after ?? 0;
  return (await publicClient(options).readBulletin()).log_size;
}

/** Absent members match everything; times are milliseconds since the epoch. */
type EventFilter = OptionsIn<typeof EVENT_FILTERS>;

/** Tests entries in their order; `keys` are those of the nodes that the subject may name. */
export function eventTest(
  { actor, type, subject, since, until }: EventFilter,
  keys: Iterable<string> = [],
): (entry: AuditSaid) => boolean {
  const isSubject = subject === undefined ? null : subjectTest(subject, new Set(keys));
  return (entry) => {
    const isAbout = isSubject?.(entry.details) ?? true;
    return (
      isAbout &&
      (actor === undefined || entry.actor_key_id === actor) &&
      (type === undefined || type.some((name) => name === entry.event_type)) &&
      (since === undefined || Date.parse(entry.created_at) >= since) &&
      (until === undefined || Date.parse(entry.created_at) < until)
    );
  };
}

/**
 * Whether details are about the subject. A revocation names only a certificate, so what earlier entries say of the node
 * with this name or key leads to it.
 */
function subjectTest(subject: string, ids: Set<string>): (details: JsonObject) => boolean {
  return (details) => {
    const { name, node_public_key: key, cert_id, new_cert_id } = details;
    const isOfNode = typeof key === 'string' && (ids.has(key) || isNamedBy(key, subject));
    if (name === subject || isOfNode) {
      for (const id of [key, cert_id, new_cert_id]) if (typeof id === 'string') ids.add(id);
    }
    return names(details, (text) => ids.has(text) || isNamedBy(text, subject));
  };
}

/** The key of a node that the entry gives this name. */
export function keyNamed({ details }: AuditSaid, name: string | undefined): readonly string[] {
  const { name: given, node_public_key: key } = details;
  return given === name && typeof key === 'string' ? [key] : [];
}

/** Whether such a text appears anywhere in the value. */
function names(value: JsonValue, isSuch: (text: string) => boolean): boolean {
  if (typeof value === 'string') return isSuch(value);
  if (Array.isArray(value)) return value.some((item: JsonValue) => names(item, isSuch));
  return isJsonObject(value) && Object.values(value).some((member) => names(member, isSuch));
}

function instant(text: string): number {
  return parseRequestTimestamp(timeAgo(text)) ?? 0;
}

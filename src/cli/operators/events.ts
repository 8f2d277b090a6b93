/** `mesh-na events`: shows the events of an authority from its audit log. */

import { type Command, InvalidArgumentError } from 'commander';
import { fromNow, inWords } from '../../base/duration.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import { certificatePages } from '../../client/certificate-search.ts';
import { EventChainError } from '../../client/event-chain.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import { AUDIT_EVENTS, type AuditEvent } from '../../protocol/rows/audit-event.ts';
import { isNodeName } from '../../protocol/rows/node-description.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { publicClient } from '../connection/server.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { EXIT, failure } from '../kernel/errors.ts';
import { isNamedBy, shortForms } from '../kernel/ids.ts';
import { rowsOf } from '../kernel/list.ts';
import { timeAgo } from '../kernel/options.ts';
import {
  asJson,
  type Line,
  painted,
  printable,
  printableJson,
  printNotice,
  printResult,
  type Style,
} from '../kernel/output.ts';
import type { TableOptions } from '../kernel/table.ts';
import { cut } from '../kernel/width.ts';
import { stopSignal } from '../service/stop-request.ts';

export const EVENT_FILTERS = [
  WIDE,
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
    { parse: eventIndex },
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
  const shown: JsonObject[] = [];
  const signal = stopSignal();
  const client = operatorClient(options);
  const isWanted = eventTest(options, await keysOfNode(client, options.subject));
  const events = client.events({
    follow,
    after: await firstIndex(options),
    signal,
    onLost: ({ message }, ms) =>
      printNotice(`${message}; trying again in ${inWords(Math.ceil(ms / 1000))}`),
  });
  for await (const event of verified(events)) {
    const entry = { ...event.entry, details: asJson(event.entry.details) };
    if (!isWanted(entry)) continue;
    // Print a single object, unless the list never ends.
    if (json && !follow) shown.push(asJson(event));
    else printResult({ json }, asJson(event), [eventLine(entry, options, `${event.index}  `)]);
  }
  if (json && !follow) printResult(options, { events: shown }, []);
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
): AsyncGenerator<Entry & { readonly hash: string }, void> {
  for await (const { entry, hash } of verified(client.events({ follow: false, after: 0 }))) {
    yield { ...entry, details: asJson(entry.details), hash };
  }
}

/** The keys of the nodes with this name. */
async function keysOfNode(client: OperatorClient, name: string | undefined): Promise<string[]> {
  if (name === undefined || !isNodeName(name)) return [];
  const rows = await rowsOf('Certificates', certificatePages(client, { name }));
  return rows.flatMap(({ cert_id, node_public_key }) => [node_public_key, cert_id]);
}

/** With `--follow`, start with new events. */
async function firstIndex(options: EventsOptions): Promise<number> {
  const { follow = false, after } = options;
  if (after !== undefined || !follow) return after ?? 0;
  return (await publicClient(options).readBulletin()).log_size;
}

function eventIndex(text: string): number {
  const index = Number(text);
  if (/^[0-9]+$/.test(text) && Number.isSafeInteger(index)) return index;
  throw new InvalidArgumentError('It must be the index of an event, or 0.');
}

/** The members that commands read of an entry, wherever it comes from. */
export interface Entry {
  readonly created_at: string;
  readonly event_type: string;
  readonly actor_key_id?: string;
  readonly details: JsonObject;
}

/** Absent members match everything; times are milliseconds since the epoch. */
type EventFilter = OptionsIn<typeof EVENT_FILTERS>;

/** Tests entries in their order; `keys` are those of the nodes that the subject may name. */
export function eventTest(
  { actor, type, subject, since, until }: EventFilter,
  keys: Iterable<string> = [],
): (entry: Entry) => boolean {
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
export function keyNamed({ details }: Entry, name: string | undefined): readonly string[] {
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

/** One line, which begins with `before`; complete in a pipe; on a terminal with relative times and short ids, cut to its width. */
export function eventLine(entry: Entry, { wide = false }: TableOptions, before = ''): Line {
  const { isTTY = false, columns } = process.stdout;
  const { created_at, event_type, actor_key_id = '-', details } = entry;
  if (!isTTY || wide) {
    return `${before}${created_at}  ${event_type}  ${actor_key_id}  ${printableJson(details)}`;
  }
  const time = fromNow((parseRequestTimestamp(created_at) ?? 0) - systemRuntime.now());
  const start = `${before}${time.padEnd(TIME_WIDTH)}  `;
  const type = printable(event_type).padEnd(TYPE_WIDTH);
  const rest = printable(`  ${actor_key_id.padEnd(ACTOR_WIDTH)}  ${inShort(details)}`);
  const line = cut(`${start}${type}${rest}`.trimEnd(), columns);
  const [from, to] = [start.length, start.length + type.length];
  const style = styleOf(event_type);
  if (style === null || line.length < to) return { styled: line };
  return { styled: line.slice(0, from) + painted(style, type, process.stdout) + line.slice(to) };
}

/** Wide enough for most values, so that most lines are aligned. */
const TIME_WIDTH = '119m ago'.length;
const TYPE_WIDTH = 'certificate_revoked'.length;
const ACTOR_WIDTH = 'ops-privileged'.length;

function styleOf(eventType: string): Style | null {
  if (/_(?:failed|denied|rejected|compromised)$/.test(eventType)) return 'red';
  return /_(?:revoked|withdrawn)$/.test(eventType) ? 'yellow' : null;
}

/** The line may be cut, so what an event is about comes first. */
const FIRST = [
  'name',
  'cert_id',
  'node_public_key',
  'key_id',
  'treaty_id',
  'attestation_id',
  'reason',
];

function inShort(details: JsonObject): string {
  const first = FIRST.filter((name) => Object.hasOwn(details, name));
  const others = Object.keys(details).filter((name) => !first.includes(name));
  return [...first, ...others]
    .map((name): [string, JsonValue] => [name, details[name] ?? null])
    .map(([name, value]) => `${name}=${shortText(value)}`)
    .join(' ');
}

function shortText(value: JsonValue): string {
  if (typeof value === 'string') return shortForms([value]).get(value) ?? value;
  if (Array.isArray(value)) return value.map((item: JsonValue) => shortText(item)).join(',');
  return isJsonObject(value) ? `{${inShort(value)}}` : String(value);
}

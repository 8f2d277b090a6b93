/** Audit log entries on the command line: which ones are wanted, and one line for each. */
import { type Command, Option } from 'commander';
import { fromNow } from '../../base/duration.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import { eventTypeOption, timeAgo } from '../kernel/options.ts';
import { type Line, painted, printable, printableJson, type Style } from '../kernel/printable.ts';
import { isNamedBy, shortForms } from '../kernel/short-id.ts';
import { addWideOption, cut, type TableOptions } from '../kernel/table.ts';

/** The members that commands read of an entry, wherever it comes from. */
export interface Entry {
  readonly created_at: string;
  readonly event_type: string;
  readonly actor_key_id?: string;
  readonly details: JsonObject;
}

/** Absent members match everything. */
export interface EventFilter {
  readonly actor?: string;
  readonly type?: readonly string[];
  readonly subject?: string;
  /** Milliseconds since the epoch. */
  readonly since?: number;
}

export function addEventFilters(command: Command): Command {
  return addWideOption(command)
    .option('--actor <key-id>', 'only events caused by this operator key')
    .addOption(eventTypeOption())
    .option(
      '--subject <id>',
      'only events that name this certificate, key, treaty, node or other id (a prefix is enough)',
    )
    .addOption(
      new Option(
        '--since <time>',
        'only events since this time, or within a duration such as 7d',
      ).argParser(instant),
    );
}

export function isWanted(entry: Entry, { actor, type, subject, since }: EventFilter): boolean {
  return (
    (actor === undefined || entry.actor_key_id === actor) &&
    (type === undefined || type.includes(entry.event_type)) &&
    (since === undefined || Date.parse(entry.created_at) >= since) &&
    (subject === undefined || names(entry.details, subject))
  );
}

/** Whether the subject appears as a string anywhere in the value. */
function names(value: JsonValue, subject: string): boolean {
  if (typeof value === 'string') return isNamedBy(value, subject);
  if (Array.isArray(value)) return value.some((item: JsonValue) => names(item, subject));
  return isJsonObject(value) && Object.values(value).some((member) => names(member, subject));
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

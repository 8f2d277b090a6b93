/** `mesh-na audit show`: who did what, from the audit log of a data folder or of a database. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { JsonObject, JsonValue } from '../json/value.ts';
import { isJsonObject } from '../json/value.ts';
import type { AuditEntry } from '../store/store.ts';
import { parseRequestTimestamp } from '../timestamp.ts';
import { noteEmptyLog, openLog } from './audit-log.ts';
import { collect, examples, jsonOption } from './options.ts';
import { type OutputOptions, printResult } from './output.ts';
import { printableJson } from './printable.ts';
import { addPlaceOptions, type StatePlace } from './store-address.ts';

interface ShowOptions extends OutputOptions, StatePlace, Wanted {}

/** What an entry has to be; absent members say nothing. */
interface Wanted {
  readonly actor?: string;
  readonly type?: readonly string[];
  readonly subject?: string;
  /** Milliseconds since the epoch. */
  readonly since?: number;
}

export function defineAuditShow(show: Command): void {
  addPlaceOptions(show)
    .description('show who did what: the entries of the log, the oldest first')
    .option('--actor <key-id>', 'only what this operator key caused')
    .option('--type <event>', 'only events of this type (repeatable)', collect)
    .option('--subject <id>', 'only entries that name this certificate, key, treaty or other id')
    .addOption(new Option('--since <time>', 'only entries from this time on').argParser(instant))
    .addOption(jsonOption())
    .addHelpText(
      'after',
      examples([
        'mesh-na audit show --actor ops-privileged --since 2026-11-01',
        'mesh-na audit show --type certificate_revoked --type operator_key_revoked --json',
        'mesh-na audit show --subject 5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00',
      ]),
    )
    .action(runShow);
}

async function runShow(options: ShowOptions): Promise<void> {
  const forJson: JsonObject[] = [];
  let read = 0;
  let shown = 0;
  const { entries } = await openLog(options);
  for await (const entry of entries) {
    read += 1;
    if (!isWanted(entry, options)) continue;
    shown += 1;
    if (options.json) forJson.push({ ...entry });
    else printResult({}, {}, [lineOf(entry)]);
  }
  if (options.json) printResult(options, { entries: forJson }, []);
  else if (read === 0) noteEmptyLog();
  else if (shown === 0) process.stderr.write(`None of the ${read} entries of the log matches.\n`);
}

function isWanted(entry: AuditEntry, { actor, type, subject, since }: Wanted): boolean {
  return (
    (actor === undefined || entry.actor_key_id === actor) &&
    (type === undefined || type.includes(entry.event_type)) &&
    (since === undefined || Date.parse(entry.created_at) >= since) &&
    (subject === undefined || names(entry.details, subject))
  );
}

/** Whether the subject is a text anywhere in the value. */
function names(value: JsonValue, subject: string): boolean {
  if (typeof value === 'string') return value === subject;
  if (Array.isArray(value)) return value.some((item: JsonValue) => names(item, subject));
  return isJsonObject(value) && Object.values(value).some((member) => names(member, subject));
}

function lineOf({ created_at, event_type, actor_key_id = '-', details }: AuditEntry): string {
  return `${created_at}  ${event_type}  ${actor_key_id}  ${printableJson(details)}`;
}

function instant(text: string): number {
  const read = parseRequestTimestamp(text);
  if (read !== null) return read;
  throw new InvalidArgumentError('It must be a time such as 2026-11-01 or 2026-11-01T10:00:00Z.');
}

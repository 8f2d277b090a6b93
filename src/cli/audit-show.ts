/** `mesh-na audit show`: who did what, from the audit log of a data folder or of a database. */
import { type Command, Option } from 'commander';
import type { JsonValue } from '../base/json/value.ts';
import { isJsonObject } from '../base/json/value.ts';
import { parseRequestTimestamp } from '../base/timestamp.ts';
import type { AuditEntry } from '../store/store.ts';
import { noteEmptyLog, openLog } from './audit-log.ts';
import { eventTypeOption, examples, jsonOption, timeAgo, wholeNumber } from './options.ts';
import { type OutputOptions, printNote, printResult, printText } from './output.ts';
import { printableJson } from './printable.ts';
import { isNamedBy } from './short-id.ts';
import { addPlaceOptions, type StatePlace } from './store-address.ts';

interface ShowOptions extends OutputOptions, StatePlace, Wanted {
  readonly last?: number;
}

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
    .addOption(eventTypeOption())
    .option(
      '--subject <id>',
      'only entries that name this certificate, key, treaty or other id, or one that begins so',
    )
    .addOption(
      new Option(
        '--since <time>',
        'only entries from this time on, or of a length until now, such as 7d',
      ).argParser(instant),
    )
    .option(
      '--last <n>',
      'only this many entries, the newest (default: a screenful on a terminal without --since, else all)',
      wholeNumber(),
    )
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
  const { json = false } = options;
  const last = options.last ?? screenful(options);
  const kept: AuditEntry[] = [];
  const isHeld = json || last !== null;
  let read = 0;
  let matching = 0;
  const { entries } = await openLog(options);
  for await (const entry of entries) {
    read += 1;
    if (!isWanted(entry, options)) continue;
    matching += 1;
    if (isHeld) kept.push(entry);
    else printText([lineOf(entry)]);
    if (last !== null && kept.length >= 2 * last) kept.splice(0, kept.length - last);
  }
  const shown = last === null ? kept : kept.slice(-last);
  if (json) return printResult({ json }, { entries: shown.map((entry) => ({ ...entry })) }, []);
  printText(shown.map(lineOf));
  if (read === 0) noteEmptyLog();
  else if (matching === 0) printNote(`None of the ${read} entries of the log matches.`);
  else if (last !== null && options.last === undefined && matching > last) {
    printNote(`These are the last ${last} of ${matching} entries; --last shows more.`);
  }
}

/** What fits on a terminal with the prompt and a note below it; null where all is shown. */
function screenful({ json = false, since }: ShowOptions): number | null {
  const { isTTY, rows } = process.stdout;
  return isTTY && !json && since === undefined ? Math.max(rows - 2, 1) : null;
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
  if (typeof value === 'string') return isNamedBy(value, subject);
  if (Array.isArray(value)) return value.some((item: JsonValue) => names(item, subject));
  return isJsonObject(value) && Object.values(value).some((member) => names(member, subject));
}

function lineOf({ created_at, event_type, actor_key_id = '-', details }: AuditEntry): string {
  return `${created_at}  ${event_type}  ${actor_key_id}  ${printableJson(details)}`;
}

function instant(text: string): number {
  return parseRequestTimestamp(timeAgo(text)) ?? 0;
}

/** `mesh-na audit`: reads the audit log of a data folder or a database, also while an authority is running on it. */
import type { Command } from 'commander';
import { verifyAuditChain } from '../authority/subjects/audit.ts';
import { jsonText } from '../base/json/write.ts';
import { type AuditEntry, GENESIS_HASH } from '../store/store.ts';
import { noteEmptyLog, openLog } from './audit-log.ts';
import { defineAuditShow } from './audit-show.ts';
import { EXIT, failure } from './exit-codes.ts';
import { examples, jsonOption } from './options.ts';
import { type OutputOptions, printResult } from './output.ts';
import { printableJson } from './printable.ts';
import { addOutOption, type RecordOptions } from './record-output.ts';
import { saveStream } from './saved-file.ts';
import { addPlaceOptions, type StatePlace } from './store-address.ts';

interface AuditOptions extends OutputOptions, StatePlace {}

interface ExportOptions extends AuditOptions, RecordOptions {}

export function addAuditCommands(program: Command): void {
  const audit = program.command('audit').description('verify, show or export the audit log');
  defineAuditShow(audit.command('show'));
  addPlaceOptions(audit.command('verify'))
    .description('check that no entry was altered or removed, and in a data folder the data files')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      examples([
        'mesh-na audit verify --data-dir ./mesh-data',
        'mesh-na audit verify --store postgresql://mesh@db/mesh',
      ]),
    )
    .action(verify);
  addPlaceOptions(addOutOption(audit.command('export'), 'the entries, one a line,'))
    .description('print every entry as one JSON object a line; with --json, one object in all')
    .addOption(jsonOption())
    .addHelpText('after', examples(['mesh-na audit export --out audit.ndjson']))
    .action(exportEntries);
}

async function verify(options: AuditOptions): Promise<void> {
  const { pagesChecked, entries } = await openLog(options);
  const verdict = await verifyAuditChain(entries, GENESIS_HASH);
  if (!verdict.valid) {
    const { position, reason } = verdict;
    throw failure(
      EXIT.refused,
      reason,
      `The audit log is not intact: entry ${position}, ${reason}`,
    );
  }
  const { length, head } = verdict;
  const pages = pagesChecked === null ? {} : { pages_checked: pagesChecked };
  printResult(options, { valid: true, length, head, ...pages }, [
    `The audit log is intact: ${length} entries, head ${head}`,
    ...(pagesChecked === false ? [NOT_CHECKED] : []),
  ]);
}

const NOT_CHECKED =
  'The pages of the database changed too often to be checked; an authority checks them when it starts';

async function exportEntries(options: ExportOptions): Promise<void> {
  const { json = false, out = '-' } = options;
  if (out !== '-') {
    const length = await saveEntries(out, options);
    printResult(options, { length, file: out }, [`${length} entries are saved in ${out}.`]);
    return;
  }
  const { entries } = await openLog(options);
  const all: AuditEntry[] = [];
  let length = 0;
  for await (const entry of entries) {
    length += 1;
    if (json) all.push(entry);
    else process.stdout.write(`${printableJson(toObject(entry))}\n`);
  }
  if (json) printResult({ json }, { entries: all.map(toObject) }, []);
  else if (length === 0) noteEmptyLog();
}

/** A long log is not held in memory. */
async function saveEntries(out: string, options: ExportOptions): Promise<number> {
  const { force = false } = options;
  const { entries } = await openLog(options);
  let length = 0;
  async function* lines() {
    for await (const entry of entries) {
      length += 1;
      yield `${jsonText(toObject(entry))}\n`;
    }
  }
  await saveStream(out, lines(), { isSecret: true, overwrites: force });
  return length;
}

function toObject(entry: AuditEntry) {
  return { ...entry };
}

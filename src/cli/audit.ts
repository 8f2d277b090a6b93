/** `mesh-na audit`: reads the audit log of a data folder, also while an authority is running on it. */
import type { Command } from 'commander';
import { verifyAuditChain } from '../authority/engine/audit.ts';
import { jsonText } from '../json/write.ts';
import { type AuditEntry, GENESIS_HASH } from '../store/store.ts';
import { openLog } from './audit-log.ts';
import { defineAuditShow } from './audit-show.ts';
import { EXIT, failure, onLocalFiles } from './exit-codes.ts';
import { dataDirOption, examples, jsonOption } from './options.ts';
import { type OutputOptions, printResult } from './output.ts';
import { addOutOption, type RecordOptions } from './record-output.ts';
import { saveFile } from './saved-file.ts';

interface AuditOptions extends OutputOptions {
  readonly dataDir: string;
}

interface ExportOptions extends AuditOptions, RecordOptions {}

export function addAuditCommands(program: Command): void {
  const audit = program.command('audit').description('verify, show or export the audit log');
  defineAuditShow(audit.command('show'));
  audit
    .command('verify')
    .description('check the database, and that no entry of the hash chain was altered or removed')
    .addOption(dataDirOption())
    .addOption(jsonOption())
    .addHelpText('after', examples(['mesh-na audit verify --data-dir ./mesh-data']))
    .action(verify);
  addOutOption(audit.command('export'), 'the entries, one a line,')
    .description('print every entry as one JSON object a line; with --json, one object in all')
    .addOption(dataDirOption())
    .addOption(jsonOption())
    .addHelpText('after', examples(['mesh-na audit export --out audit.ndjson']))
    .action(exportEntries);
}

async function verify({ dataDir, json = false }: AuditOptions): Promise<void> {
  const { isChecked, entries } = await openLog(dataDir);
  const verdict = onLocalFiles(() => verifyAuditChain(entries, GENESIS_HASH));
  if (!verdict.valid) {
    const { position, reason } = verdict;
    throw failure(
      EXIT.refused,
      reason,
      `The audit log is not intact: entry ${position}, ${reason}`,
    );
  }
  const { length, head } = verdict;
  printResult({ json }, { valid: true, length, head, pages_checked: isChecked }, [
    `The audit log is intact: ${length} entries, head ${head}`,
    ...(isChecked ? [] : [NOT_CHECKED]),
  ]);
}

const NOT_CHECKED =
  'The pages of the database changed too often to be checked; an authority checks them when it starts';

async function exportEntries(options: ExportOptions): Promise<void> {
  const { dataDir, json = false, out = '-' } = options;
  const { entries } = await openLog(dataDir);
  if (out !== '-') {
    const length = onLocalFiles(() => saveEntries(entries, out, options));
    printResult(options, { length, file: out }, [`${length} entries are saved in ${out}.`]);
    return;
  }
  onLocalFiles(() => {
    if (json) printResult({ json }, { entries: [...entries].map(toObject) }, []);
    else for (const entry of entries) process.stdout.write(`${jsonText(toObject(entry))}\n`);
  });
}

/** A long log is not held in memory. */
function saveEntries(
  entries: Iterable<AuditEntry>,
  out: string,
  { force = false }: ExportOptions,
): number {
  let length = 0;
  function* lines() {
    for (const entry of entries) {
      length += 1;
      yield `${jsonText(toObject(entry))}\n`;
    }
  }
  saveFile(out, lines(), { isSecret: true, overwrites: force });
  return length;
}

function toObject(entry: AuditEntry) {
  return { ...entry };
}

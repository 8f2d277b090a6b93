/** What commands that change many things at once share: they show what they would change, and ask for its number. */
import { answerTo, isTerminal } from './confirm.ts';
import { EXIT, failure, usageFailure } from './exit-codes.ts';
import { asJson, type OutputOptions, printResult, printText } from './output.ts';
import { type Column, type TableOptions, tableOf } from './table.ts';

/** What is done to how many of what, in words. */
export interface Many<Row> {
  /** Of the things, as the member of the JSON that has them and within a sentence. */
  readonly plural: string;
  /** The same at its beginning. */
  readonly title: string;
  /** Also the end of the option that gives the number: `--yes-<verb>`. */
  readonly verb: string;
  readonly done: string;
  readonly columns: readonly Column<Row>[];
}

interface ManyOptions extends OutputOptions, TableOptions {}

/** Throws unless the number of things was given, or is typed at a terminal. */
export async function assertMeant<Row>(
  { plural, verb, done, columns }: Many<Row>,
  rows: readonly Row[],
  given: number | undefined,
  { json, wide = false }: ManyOptions,
): Promise<void> {
  const count = rows.length;
  if (count === 0 && given === undefined) return;
  if (given === undefined && isTerminal() && !json) {
    printText(tableOf(columns, rows, { wide }));
    const answer = await answerTo(`Type ${count} to ${verb} these ${count} ${plural}: `);
    if (answer === String(count)) return;
    throw failure(EXIT.usage, 'not_confirmed', `The number was not typed, so nothing was ${done}`);
  }
  if (given === count) return;
  const cure = `--yes-${verb} ${count} ${verb}s them, and --dry-run shows them`;
  throw usageFailure(`${count} ${plural} match, so nothing was ${done}; ${cure}`);
}

export function printDryRun<Row extends object>(
  { plural, title, done, columns }: Many<Row>,
  rows: readonly Row[],
  options: ManyOptions,
): void {
  const json = { dry_run: true, count: rows.length, [plural]: rows.map(asJson) };
  printResult(options, json, [
    ...(rows.length === 0 ? [] : tableOf(columns, rows, options)),
    `${title} that would be ${done}: ${rows.length}. Nothing was ${done}.`,
  ]);
}

/** Asks a person at a terminal, also for the number of items that a bulk command is to change. */

import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { EXIT, failure, usageFailure } from './errors.ts';
import { asJson, type OutputOptions, printNote, printResult, printText } from './output.ts';
import { type Column, type TableOptions, tableOf } from './table.ts';

export function isTerminal(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Shows the lines, then asks; any answer but yes means no. */
export async function isConfirmed(shown: readonly string[], question: string): Promise<boolean> {
  for (const line of shown) printNote(line);
  return /^y(es)?$/i.test(await answerTo(`${question} [y/N] `));
}

interface Confirmation {
  readonly question: string;
  /** What to do without a terminal. */
  readonly otherwise: string;
  /** The text after another answer than yes. */
  readonly declined: string;
}

/** Throws unless a person at a terminal says yes to what is shown. */
export async function assertConfirmed(
  shown: readonly string[],
  { question, otherwise, declined }: Confirmation,
): Promise<void> {
  if (!isTerminal()) throw usageFailure(otherwise);
  if (await isConfirmed(shown, question)) return;
  throw failure(EXIT.refused, 'not_confirmed', declined);
}

async function answerTo(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // An interrupt or the end of the input also means no.
    const answer = await Promise.race([
      terminal.question(question).catch(() => '\n'),
      once(terminal, 'close').then(() => '\n'),
    ]);
    if (answer === '\n') process.stderr.write(answer);
    return answer.trim();
  } finally {
    terminal.close();
  }
}

/** Describes a bulk change in words. */
export interface Many<Row> {
  /** Names the items, both within a sentence and as the JSON member that contains them. */
  readonly plural: string;
  /** The same at the beginning of a sentence. */
  readonly title: string;
  /** Also part of the option that confirms the number: `--yes-<verb>`. */
  readonly verb: string;
  readonly done: string;
  readonly columns: readonly Column<Row>[];
}

interface ManyOptions extends OutputOptions, TableOptions {}

/** Throws unless the number of items was given as an option or is typed at a terminal. */
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
    throw failure(EXIT.usage, 'not_confirmed', `Not confirmed, so nothing was ${done}`);
  }
  if (given === count) return;
  const cure = `use --yes-${verb} ${count} to ${verb} them, or --dry-run to show them`;
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

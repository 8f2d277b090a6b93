/** What a person at a terminal is asked, also for the number of items of a bulk change, and sees while waiting. */

import { once } from 'node:events';
import { clearLine, cursorTo } from 'node:readline';
import { createInterface } from 'node:readline/promises';
import { counted } from '../../base/counts.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { EXIT, failure, usageFailure } from './errors.ts';
import {
  asJson,
  type OutputOptions,
  printNote,
  printNotice,
  printResult,
  printText,
} from './output.ts';
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
  /** Names an item; with an s, the JSON member that contains them. */
  readonly noun: string;
  /** Also part of the option that confirms the number: `--yes-<verb>`. */
  readonly verb: string;
  readonly done: string;
  readonly columns: readonly Column<Row>[];
}

interface ManyOptions extends OutputOptions, TableOptions {}

/** Throws unless the number of items was given as an option or is typed at a terminal. */
export async function assertMeant<Row>(
  { noun, verb, done, columns }: Many<Row>,
  rows: readonly Row[],
  given: number | undefined,
  { json, wide = false }: ManyOptions,
): Promise<void> {
  const count = rows.length;
  if (count === 0 && given === undefined) return;
  if (given === undefined && isTerminal() && !json) {
    printText(tableOf(columns, rows, { wide }));
    const what = count === 1 ? `this ${noun}` : `these ${counted(count, noun)}`;
    const answer = await answerTo(`Type ${count} to ${verb} ${what}: `);
    if (answer === String(count)) return;
    throw failure(EXIT.usage, 'not_confirmed', `Not confirmed, so nothing was ${done}`);
  }
  if (given === count) return;
  const cure = `use --yes-${verb} ${count} to ${verb} them, or --dry-run to show them`;
  throw usageFailure(
    `${counted(count, `${noun} matches`, `${noun}s match`)}, so nothing was ${done}; ${cure}`,
  );
}

export function printDryRun<Row extends object>(
  { noun, done, columns }: Many<Row>,
  rows: readonly Row[],
  options: ManyOptions,
): void {
  const json = { dry_run: true, count: rows.length, [`${noun}s`]: rows.map(asJson) };
  printResult(options, json, [
    ...(rows.length === 0 ? [] : tableOf(columns, rows, options)),
    `${counted(rows.length, noun)} would be ${done}. Nothing was ${done}.`,
  ]);
}

/** What a bulk change has done before it fails: with `--json` the result so far. */
export function printPart({ json }: OutputOptions, result: JsonObject, sentence: string): void {
  if (json) printResult({ json }, result, []);
  else printNotice(`${sentence} before this failed`);
}

const PATIENCE_MS = 1000;
/** The number of items between looks at the clock. */
const ITEMS_BETWEEN = 1000;

/** Shows progress while asynchronous work is pending. */
export async function whileWaiting<T>(what: string, work: () => Promise<T>): Promise<T> {
  const line = progressLine(what);
  const timer = setInterval(line.show, PATIENCE_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    line.clear();
  }
}

/**
 * Passes through what arrives, in which there may be several items, and shows their number, because a busy loop may starve
 * timers.
 */
export async function* counting<T>(
  what: string,
  parts: AsyncIterable<T>,
  itemsIn: (part: T) => number = () => 1,
): AsyncGenerator<T, void> {
  const line = progressLine(what);
  let count = 0;
  let shown = 0;
  try {
    for await (const part of parts) {
      count += itemsIn(part);
      if (count >= shown + ITEMS_BETWEEN) {
        shown = count;
        line.show(count);
      }
      yield part;
    }
  } finally {
    line.clear();
  }
}

function progressLine(what: string) {
  const { stderr } = process;
  const begun = systemRuntime.elapsed();
  let shownAt = begun;
  return {
    show(count?: number): void {
      const now = systemRuntime.elapsed();
      // A timer may fire a little early.
      if (!stderr.isTTY || now - shownAt < PATIENCE_MS * 0.9) return;
      shownAt = now;
      const done = count === undefined ? '' : `${count} `;
      erase();
      stderr.write(`${what} ${done}(${Math.round((now - begun) / 1000)} s)`);
    },
    clear(): void {
      if (shownAt !== begun) erase();
    },
  };

  function erase(): void {
    cursorTo(stderr, 0);
    clearLine(stderr, 0);
  }
}

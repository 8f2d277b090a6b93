/**
 * Output of commands that create a record or read a document. The authority does not store most records, so they must
 * not get lost: they are saved to the file of `--out`, and printed if there is none or it cannot be written.
 */
import type { Command } from 'commander';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { EXIT, failure, onLocalFiles } from './errors.ts';
import { assertCanSave, saveFile, systemCode } from './files.ts';
import {
  type Line,
  type OutputOptions,
  printableJson,
  printLines,
  printNote,
  printResult,
} from './output.ts';

export interface OutOptions {
  readonly out?: string;
  readonly force?: boolean;
}

export interface RecordOptions extends OutputOptions, OutOptions {}

/** Call `assertCanSave` before requesting a record that is issued only once. */
export function addOutOption(command: Command, what = 'the record'): Command {
  return command
    .option('--out <file>', `save ${what} to this file, - for standard output`)
    .option('--force', 'overwrite the file')
    .hook('preAction', (_, action) => assertOut(action.opts()));
}

export interface Description {
  /** Says briefly what was created. */
  readonly made: string;
  /** Details for people. */
  readonly about: string;
}

export function deliverRecord(
  options: RecordOptions,
  record: JsonObject,
  { made, about }: Description,
): void {
  if (saveRecord(options, record, made)) {
    printResult(options, record, [`${made} and saved in ${options.out}.`, about]);
  } else {
    printResult({ json: true }, record, []);
    if (!options.json) printNote(`${made}. ${about}`);
  }
}

/** For commands that show a record as text unless there is a file; `about` is that text. */
export function showRecord(
  options: RecordOptions,
  record: JsonObject,
  made: string,
  about: readonly string[],
): void {
  if (options.out === '-') printResult({ json: true }, record, []);
  else if (saveRecord(options, record, made)) {
    printResult(options, record, [`${made} and saved in ${options.out}.`, ...about]);
  } else printResult(options, record, [`${made}.`, ...about]);
}

/** For commands that show a document as text unless there is a file; `text` is that text. */
export function showDocument(
  options: RecordOptions,
  document: JsonObject,
  name: string,
  text: readonly Line[],
): void {
  if (options.out === '-') printResult({ json: true }, document, []);
  else if (saveRecord(options, document, `${name} is read`)) {
    printResult(options, document, [`Saved to ${options.out}: ${name}.`]);
  } else printResult(options, document, text);
}

interface Saving {
  readonly made: string;
  /** Only its owner can read the file. */
  readonly isSecret: boolean;
  /** Printed instead of the text if it cannot be saved. */
  readonly fallback?: string;
}

/** Saves the text if `--out` names a file, and returns whether it does. Prints text that cannot be saved. */
export function saveText(
  { out, force = false }: OutOptions,
  text: string,
  { made, isSecret, fallback = text.trimEnd() }: Saving,
): boolean {
  if (out === undefined || out === '-') return false;
  try {
    saveFile(out, text, { isSecret, overwrites: force });
  } catch (error) {
    printLines([fallback]);
    const message = `${made}, but ${out} cannot be written (${systemCode(error)}); it is on standard output`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  return true;
}

function saveRecord(options: OutOptions, record: JsonObject, made: string): boolean {
  const fallback = printableJson(record);
  return saveText(options, `${jsonText(record)}\n`, { made, isSecret: false, fallback });
}

function assertOut({ out, force = false }: OutOptions): void {
  if (out === undefined || out === '-') return;
  onLocalFiles(() => assertCanSave(out, { overwrites: force }));
}

/**
 * Output of commands that create a record or read a document. The authority does not store most records, so they must
 * not get lost: they are saved to the file of `--out`, and printed if there is none or it cannot be written.
 */
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

export interface Delivery {
  /** Says briefly what was created or read. */
  readonly made: string;
  /** Details for people. */
  readonly about: string | readonly Line[];
  /** What is shown, instead of the record, unless `--out` is given. */
  readonly text?: readonly Line[];
  /** Shown of a document that is saved. */
  readonly saved?: string;
}

export function deliver(
  options: RecordOptions,
  record: JsonObject,
  { made, about, text, saved = `${made} and saved in ${options.out}.` }: Delivery,
): void {
  const lines = typeof about === 'string' ? [about] : about;
  if (saveRecord(options, record, made)) printResult(options, record, [saved, ...lines]);
  else if (text !== undefined && options.out !== '-') printResult(options, record, text);
  else {
    printResult({ json: true }, record, []);
    if (text === undefined && !options.json) printNote([`${made}.`, ...lines].join(' '));
  }
}

/** A record that is shown as text. */
export function shown(made: string, about: readonly Line[]): Delivery {
  return { made, about, text: [`${made}.`, ...about] };
}

/** A document that was read, and is shown as text. */
export function documentOf({ out }: OutOptions, name: string, text: readonly Line[]): Delivery {
  return { made: `${name} is read`, about: [], text, saved: `Saved to ${out}: ${name}.` };
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

/** Checked before a record is requested that is issued only once. */
export function assertOut({ out, force = false }: OutOptions): void {
  if (out === undefined || out === '-') return;
  onLocalFiles(() => assertCanSave(out, { overwrites: force }));
}

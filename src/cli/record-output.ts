/**
 * Output of commands that create a record. The authority does not store it, so they print the record
 * itself: to a file with `--out`, else to stdout for the next command or a redirection.
 */
import type { Command } from 'commander';
import type { JsonObject } from '../json/value.ts';
import { saveJsonFile } from './json-file.ts';
import { type OutputOptions, printNote, printResult } from './output.ts';

export interface RecordOptions extends OutputOptions {
  readonly out?: string;
}

export function addOutOption(command: Command): Command {
  return command.option('--out <file>', 'save the record in this file (default: print it)');
}

/** `made` says in a few words what was created; `about` adds details for people. */
export function deliverRecord(
  options: RecordOptions,
  record: JsonObject,
  made: string,
  about: string,
): void {
  const { json, out } = options;
  if (out !== undefined) {
    saveJsonFile(out, record, made);
    printResult(options, record, [`${made} and saved in ${out}.`, about]);
  } else {
    printResult({ json: true }, record, []);
    if (!json) printNote(`${made}. ${about}`);
  }
}

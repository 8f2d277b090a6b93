/**
 * Commands that make a record. Nobody keeps it for them, so the record itself is what they print: into a
 * file with `--out`, else on stdout, where the next command or a redirection takes it.
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

/** `made` says in a few words what there is now; `about` tells people more of it. */
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

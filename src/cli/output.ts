/** What a command prints: for people by default, exactly one JSON object with `--json`. */

import type { JsonObject } from '../base/json/value.ts';
import { EXIT, type ExitCode, failure, outcomeOf } from './exit-codes.ts';
import { type Line, printable, printableJson, shownLine } from './printable.ts';
import { painted } from './style.ts';

export interface OutputOptions {
  readonly json?: boolean;
}

/** Prints the result of a command that succeeded. */
export function printResult(
  { json }: OutputOptions,
  result: JsonObject,
  text: readonly Line[],
): void {
  if (json) writeLine(process.stdout, printableJson(result));
  else printText(text);
}

export function printText(text: readonly Line[]): void {
  for (const line of text) writeLine(process.stdout, shownLine(line));
}

/** Prints a list of any length as one JSON object: its whole text may be longer than a string can be. */
export function printJsonList(member: string, parts: readonly (readonly JsonObject[])[]): void {
  const { stdout } = process;
  const filled = parts.filter(({ length }) => length > 0);
  const count = filled.reduce((sum, { length }) => sum + length, 0);
  stdout.write(`{"count":${count},${JSON.stringify(member)}:[`);
  for (const [index, rows] of filled.entries()) {
    const text = rows.map(printableJson).join(',');
    stdout.write((index === 0 ? '' : ',') + text);
  }
  writeLine(stdout, ']}');
}

/** Prints lines on stdout as they are, for anyone who reads them from a pipe or a file. */
export function printLines(lines: readonly string[]): void {
  for (const line of lines) writeLine(process.stdout, line);
}

/** The verdict of a verification, from whichever member has it. */
export interface Finding {
  readonly passed: boolean;
  /** Why it was refused. */
  readonly reason: string;
  /** The text for a passed verification. */
  readonly approval: string;
  readonly what: string;
  readonly more?: readonly string[];
}

/**
 * Prints an answer to a verification. A refusal is an answer, so it is printed to stdout too; it ends the
 * command with its own exit code.
 */
export function printFinding(options: OutputOptions, answer: JsonObject, finding: Finding): void {
  const { passed, reason, approval, what, more = [] } = finding;
  const verdict = printable(passed ? approval : `Refused (${reason})`);
  const colored = painted(passed ? 'green' : 'red', verdict, process.stdout);
  printResult(options, answer, [{ styled: colored + printable(`: ${what}.`) }, ...more]);
  if (!passed) throw failure(EXIT.refused, reason, '');
}

/** What is printed of any verdict. */
interface Verdict extends JsonObject {
  readonly accepted: boolean;
  readonly reason: string;
}

/** What `unchecked` of an offline verdict names. */
const UNCHECKED: Readonly<Record<string, string>> = {
  attestation_revocation: 'whether the attestation was revoked',
  treaty_revocation: 'whether the treaty was revoked',
};

/** Prints a verdict on `what` of an answer with the member `accepted`. */
export function printVerdict(options: OutputOptions, verdict: Verdict, what: string): void {
  const { accepted, reason, unchecked } = verdict;
  const open = Array.isArray(unchecked) ? unchecked.map((name) => UNCHECKED[String(name)]) : [];
  const more = open.length === 0 ? [] : [`Not known offline: ${open.join(', ')}.`];
  printFinding(options, verdict, { passed: accepted, reason, approval: 'Accepted', what, more });
}

/** Prints a verdict on `what` of an answer with the member `valid`. */
export function printValidity(
  options: OutputOptions,
  verdict: { readonly valid: boolean; readonly reason: string },
  what: string,
): void {
  const { valid, reason } = verdict;
  printFinding(options, verdict, { passed: valid, reason, approval: 'Valid', what });
}

/** Answer types have no index signature, although every answer was read from JSON. */
export function asJson(answer: object): JsonObject {
  return answer as JsonObject;
}

/** Prints a warning on stderr. */
export function printNotice(message: string): void {
  writeLine(process.stderr, `mesh-na: ${printable(message)}`);
}

/** Prints a note on stderr, for commands whose stdout is a record. */
export function printNote(message: string): void {
  writeLine(process.stderr, printable(message));
}

/** Reports the error that ended the command and returns its exit code. */
export function reportFailure(error: unknown, { json }: OutputOptions): ExitCode {
  const { exit, code, message, cure = null } = outcomeOf(error);
  if (message === '') return exit;
  if (json) {
    const said = { code, message, ...(cure !== null && { cure }) };
    writeLine(process.stderr, printableJson({ error: said }));
  } else {
    const name = painted('red', 'mesh-na:', process.stderr);
    writeLine(process.stderr, `${name} ${printable(message)}`);
    if (cure) writeLine(process.stderr, `  ${printable(cure)}`);
  }
  return exit;
}

function writeLine(stream: NodeJS.WriteStream, line: string): void {
  stream.write(`${line}\n`);
}

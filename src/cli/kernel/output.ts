/** Output of commands: text for people by default, exactly one JSON object with `--json`. */

import { styleText } from 'node:util';
import stringWidth from 'string-width';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { EXIT, type ExitCode, failure, outcomeOf } from './errors.ts';

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

/** Prints a list as one JSON object in pieces, because its text may exceed the maximum length of a string. */
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

/** Prints lines on stdout unchanged, for pipes and files. */
export function printLines(lines: readonly string[]): void {
  for (const line of lines) writeLine(process.stdout, line);
}

/** Descriptions for `unchecked` of an offline verdict. */
const UNCHECKED: Readonly<Record<string, string>> = {
  attestation_revocation: 'whether the attestation was revoked',
  treaty_revocation: 'whether the treaty was revoked',
};

/** The verdict of a verification whose answer has no such members. */
export interface Finding {
  readonly passed?: boolean;
  /** Why it was rejected. */
  readonly reason?: string;
  /** The text for a passed verification. */
  readonly approval?: string;
  readonly more?: readonly string[];
}

/**
 * Prints the verdict on `what`. A rejection is also a result, so it goes to stdout, but ends the command with its own
 * exit code.
 */
export function printVerdict(
  options: OutputOptions,
  answer: JsonObject,
  what: string,
  {
    passed = answer.accepted === true || answer.valid === true,
    reason = String(answer.reason),
    approval = 'valid' in answer ? 'Valid' : 'Accepted',
    more = [],
  }: Finding = {},
): void {
  const { unchecked = [] } = answer;
  const open = Array.isArray(unchecked) ? unchecked.map((name) => UNCHECKED[String(name)]) : [];
  const unknown = open.length === 0 ? [] : [`Not known offline: ${open.join(', ')}.`];
  const verdict = printable(passed ? approval : `Refused (${reason})`);
  const colored = painted(passed ? 'green' : 'red', verdict, process.stdout);
  const styled = colored + printable(`: ${what}.`);
  printResult(options, answer, [{ styled }, ...more, ...unknown]);
  if (!passed) throw failure(EXIT.refused, reason, '');
}

/** Answer types have no index signature, although every answer was read from JSON. */
export function asJson(answer: object): JsonObject {
  return answer as JsonObject;
}

const NAME = 'mesh-na: ';
/** Of the lines below the first. */
const INDENT = 2;

/** Prints a warning on stderr. */
export function printNotice(message: string): void {
  const lines = wrapped(printable(`${NAME}${message}`), process.stderr, INDENT);
  for (const line of lines) writeLine(process.stderr, line);
}

/** Prints a note on stderr, because stdout may be a record. */
export function printNote(message: string): void {
  writeLine(process.stderr, printable(message));
}

/** Reports the error that ended the command and returns its exit code. */
export function reportFailure(error: unknown, { json }: OutputOptions): ExitCode {
  const { exit, code, cure = null, mayWait = false, ...outcome } = outcomeOf(error);
  if (outcome.message === '') return exit;
  const message = mayWait ? `${outcome.message}, or use --wait` : outcome.message;
  if (json) {
    const said = { code, message, ...(cure !== null && { cure }) };
    writeLine(process.stderr, printableJson({ error: said }));
  } else {
    const text = wrapped(printable(`${NAME}${message}`), process.stderr, INDENT);
    if (cure) text.push(...wrapped(' '.repeat(INDENT) + printable(cure), process.stderr, INDENT));
    const name = painted('red', NAME.trimEnd(), process.stderr);
    writeLine(process.stderr, text.join('\n').replace(NAME.trimEnd(), name));
  }
  return exit;
}

function writeLine(stream: NodeJS.WriteStream, line: string): void {
  stream.write(`${line}\n`);
}

/** Control and formatting characters: text from nodes and servers must not control the terminal. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, ' ');
}

/** Returns one line of JSON with these characters escaped. */
export function printableJson(value: JsonObject): string {
  return jsonText(value).replace(UNPRINTABLE, escaped);
}

function escaped(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** A line that is safe to print: it contains only printable text and colors. */
export interface StyledLine {
  readonly styled: string;
}

export type Line = string | StyledLine;

function shownLine(line: Line): string {
  return typeof line === 'string' ? printable(line) : line.styled;
}

export type Style = 'bold' | 'green' | 'red' | 'yellow';

interface Output {
  readonly isTTY?: boolean;
}

/** Uses the rules of Node.js: `FORCE_COLOR` overrides `NO_COLOR`. */
export function isColored(
  { isTTY = false }: Output,
  { FORCE_COLOR, NO_COLOR, TERM }: NodeJS.ProcessEnv,
): boolean {
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return isTTY && !NO_COLOR && TERM !== 'dumb';
}

/** Colors text that is already printable. */
export function painted(style: Style, text: string, output: Output): string {
  return isColored(output, process.env) ? styleText(style, text, { validateStream: false }) : text;
}

/** Some characters take two columns. */
export { stringWidth };

interface Room {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Lines of printable text that end between words where a terminal would end them within one. */
export function wrapped(
  text: string,
  { isTTY = false, columns = 0 }: Room,
  indent: number,
): string[] {
  if (!isTTY || columns < 2 * indent) return [text];
  const lines: string[] = [];
  let line = '';
  for (const part of text.match(/\s*\S+/g) ?? []) {
    if (line !== '' && stringWidth(line + part) > columns) {
      lines.push(line);
      line = ' '.repeat(indent) + part.trimStart();
    } else line += part;
  }
  return [...lines, line];
}

const CHARACTERS = new Intl.Segmenter();

/** The text in at most this width. */
export function cut(cell: string, width: number): string {
  if (stringWidth(cell) <= width) return cell;
  let kept = '';
  for (const { segment } of CHARACTERS.segment(cell)) {
    if (stringWidth(kept + segment) >= width) break;
    kept += segment;
  }
  return `${kept}…`;
}

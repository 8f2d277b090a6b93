/** Text that is safe to print, and colors, which only terminals get. */
import { styleText } from 'node:util';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';

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

export function shownLine(line: Line): string {
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

import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';

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

/** Control and formatting characters: text from nodes and servers must not control the terminal. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, ' ');
}

/** A line that is printed as it is: made of printable text and colors alone. */
export interface StyledLine {
  readonly styled: string;
}

export type Line = string | StyledLine;

export function shownLine(line: Line): string {
  return typeof line === 'string' ? printable(line) : line.styled;
}

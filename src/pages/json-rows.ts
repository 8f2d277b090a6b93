/** Finds the rows of a JSON list in its bytes without parsing all of them. The rows contain no nested objects. */
import { parseJson } from '../base/json/parse.ts';

/** Parsing these takes a few milliseconds. */
const BYTES_PER_SLICE = 128 * 1024;

/** Parses the rows of a list in slices. `list` comes without its brackets. */
export function* readRows<Row>(list: Buffer): Generator<void, Row[]> {
  const rows: Row[] = [];
  for (let at = 0; at < list.length; ) {
    const end = endOfRow(list, at + BYTES_PER_SLICE);
    for (const row of parseJson(`[${list.toString('utf8', at, end)}]`) as Row[]) rows.push(row);
    at = end + 1;
    if (at < list.length) yield;
  }
  return rows;
}

/** Returns the text of the first rows of a list. `list` comes without its brackets. */
export function firstRows(list: Buffer, most: number): string {
  let end = 0;
  for (let count = 0; count < most && end < list.length; count += 1) end = endOfRow(list, end);
  return list.toString('utf8', 0, end);
}

const NEXT_ROW = '},{"';

/** Returns the end of the row that contains this offset or ends just before it. */
function endOfRow(list: Buffer, from: number): number {
  for (let at = list.indexOf(NEXT_ROW, from); at >= 0; at = list.indexOf(NEXT_ROW, at + 1)) {
    // Inside a string, these characters could only be followed by the closing quote, never by a quote and a letter.
    if (isLetter(list[at + NEXT_ROW.length])) return at + 1;
  }
  return list.length;
}

function isLetter(code = 0): boolean {
  return code >= 0x61 && code <= 0x7a;
}

/** Rows of a JSON list as bytes: found without parsing all of them. They have no objects in them. */
import { parseJson } from '../base/json/parse.ts';

/** Parsing these takes a few milliseconds. */
const BYTES_PER_SLICE = 128 * 1024;

/** Parses the rows of a list, which is given without its brackets, in slices. */
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

/** The text of the first rows of a list, which is given without its brackets. */
export function firstRows(list: Buffer, most: number): string {
  let end = 0;
  for (let count = 0; count < most && end < list.length; count += 1) end = endOfRow(list, end);
  return list.toString('utf8', 0, end);
}

const NEXT_ROW = '},{"';

/** Where the row ends that this place is in, or just behind. */
function endOfRow(list: Buffer, from: number): number {
  for (let at = list.indexOf(NEXT_ROW, from); at >= 0; at = list.indexOf(NEXT_ROW, at + 1)) {
    // Inside a string these signs can only be followed by its closing quote, and that by no letter.
    if (isLetter(list[at + NEXT_ROW.length])) return at + 1;
  }
  return list.length;
}

function isLetter(code = 0): boolean {
  return code >= 0x61 && code <= 0x7a;
}

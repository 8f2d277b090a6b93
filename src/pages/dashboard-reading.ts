/** Reads only what the page shows of the published dashboard: a few treaties out of thousands. */
import { parseJson } from '../base/json/parse.ts';
import type { Dashboard } from '../protocol/rows/dashboard.ts';
import { firstRows } from './json-rows.ts';

/** Delimiters of the treaties; no member before them is free-form. */
const TREATIES = '"treaties":[';
const FEEDS = '],"revocation_feed_summary":';

export function readDashboard(
  { buffer, byteOffset, byteLength }: Uint8Array,
  mostTreaties: number,
): Dashboard {
  const text = Buffer.from(buffer, byteOffset, byteLength);
  const start = text.indexOf(TREATIES) + TREATIES.length;
  const end = text.indexOf(FEEDS, start);
  const treaties = firstRows(text.subarray(start, end), mostTreaties);
  const json = text.toString('utf8', 0, start) + treaties + text.toString('utf8', end);
  return parseJson(json) as unknown as Dashboard;
}

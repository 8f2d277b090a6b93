/** Treaties as a table for spreadsheets (RFC 4180). */
import type { EdgeRow } from '../protocol/rows/graph.ts';

const COLUMNS = [
  'from',
  'to',
  'lifecycle_state',
  'expiry_risk',
  'valid_from',
  'expires_at',
  'treaty_id',
] as const;

export function treatiesCsv(rows: readonly EdgeRow[]): string {
  const lines = rows.map((row) => COLUMNS.map((column) => field(row[column])).join(','));
  return [COLUMNS.join(','), ...lines, ''].join('\r\n');
}

/** A spreadsheet would take what begins so for a formula, and names are chosen by strangers. */
const FORMULA = /^[=+\-@\t\r]/;

function field(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** Treaties as CSV for spreadsheets (RFC 4180). */
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

/** Spreadsheets treat text that begins like this as a formula, and strangers choose these names. */
const FORMULA = /^[=+\-@\t\r]/;

function field(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

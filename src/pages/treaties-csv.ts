/** Treaties as CSV for spreadsheets (RFC 4180). */
import type { EdgeRow } from '../protocol/rows/graph.ts';
import { csvLine } from './csv.ts';

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
  const lines = rows.map((row) => csvLine(COLUMNS.map((column) => row[column])));
  return [csvLine(COLUMNS), ...lines].join('');
}

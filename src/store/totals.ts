/** Row counts of the tables: written with every unit, so that a missing row is detected. */
import { DamagedState, decodeRow, encodeRow } from './rows.ts';

export interface Totals {
  readonly revision: number;
  readonly subjects: number;
  /** The rows of the table, each with the nonces of one flush. */
  readonly nonceRows: number;
  readonly auditEntries: number;
}

export const NOTHING: Totals = { revision: 0, subjects: 0, nonceRows: 0, auditEntries: 0 };

export function encodeTotals(totals: Totals): Buffer {
  return encodeRow('meta', 'totals', totals);
}

export function decodeTotals(row: Buffer | undefined): Totals {
  return row === undefined ? NOTHING : (decodeRow('meta', 'totals', row) as Totals);
}

/** Those among the rows of table `meta`; a database has an empty row before the first change. */
export function totalsIn(meta: ReadonlyMap<string, Buffer>): Totals {
  const row = meta.get('totals');
  return decodeTotals(row?.length === 0 ? undefined : row);
}

export function assertTotal(table: string, found: number, total: number): void {
  if (found !== total) {
    throw new DamagedState(`table ${table} holds ${found} entries where ${total} were stored`);
  }
}

/** The totals whose rows can be counted, and the table of each. */
const COUNTED = { subjects: 'subjects', nonceRows: 'nonces', auditEntries: 'audit' } as const;
export type CountedTotal = keyof typeof COUNTED;

/** What is wrong with a number of rows; null when it is right. The sentence stays the same while rows are added. */
export function countProblem(counted: CountedTotal, found: number, totals: Totals): string | null {
  const lacking = totals[counted] - found;
  if (lacking === 0) return null;
  const table = `table ${COUNTED[counted]}`;
  return lacking > 0
    ? `${table} lacks ${lacking} of the entries that were stored`
    : `${table} holds ${-lacking} entries more than were stored`;
}

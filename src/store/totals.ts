/** Row counts of the tables: written with every unit, so that a missing row is detected. */
import { DamagedState } from './rows.ts';

export interface Totals {
  readonly revision: number;
  readonly subjects: number;
  /** The number of rows in the table, each with nonces of one flush. */
  readonly nonceRows: number;
  readonly auditEntries: number;
}

export const NOTHING: Totals = { revision: 0, subjects: 0, nonceRows: 0, auditEntries: 0 };

export function assertTotal(table: string, found: number, total: number): void {
  if (found !== total) {
    throw new DamagedState(`table ${table} holds ${found} entries where ${total} were stored`);
  }
}

/** The totals that can be compared with the rows of a table, and that table. */
const COUNTED = { subjects: 'subjects', nonceRows: 'nonces', auditEntries: 'audit' } as const;
export type CountedTotal = keyof typeof COUNTED;

/** The problem with a number of rows; null if it is right. The sentence stays the same while rows are added. */
export function countProblem(counted: CountedTotal, found: number, totals: Totals): string | null {
  const lacking = totals[counted] - found;
  if (lacking === 0) return null;
  const table = `table ${COUNTED[counted]}`;
  return lacking > 0
    ? `${table} lacks ${lacking} of the entries that were stored`
    : `${table} holds ${-lacking} entries more than were stored`;
}

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

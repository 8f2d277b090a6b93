/**
 * The data-license policy in force [service-states-other]: the last one created. It exists only in process memory and
 * is lost on restart.
 */
import { oneRecordMachine } from './one-record.ts';

export interface LicensePolicy {
  /** The signed record as JSON text. */
  readonly json: string;
  /** Milliseconds since the epoch. */
  readonly validUntil: number;
}

export const licensePolicyMachine = oneRecordMachine<LicensePolicy, 'active'>({
  id: 'data-license-policy',
  none: { json: '', validUntil: 0 },
  state: 'active',
  isFinal: false,
});

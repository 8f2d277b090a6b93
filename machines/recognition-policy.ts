/** Recognition policy [core-4-12]: the last one set is active. */
import { oneRecordMachine } from './one-record.ts';

export interface StoredRecognitionPolicy {
  readonly policyId: string;
  /** The policy, as served. */
  readonly json: string;
  /** Milliseconds since the epoch. */
  readonly setAt: number;
}

export const recognitionPolicyMachine = oneRecordMachine<StoredRecognitionPolicy, 'active'>({
  id: 'recognition-policy',
  none: { policyId: '', json: '', setAt: 0 },
  state: 'active',
  isFinal: false,
});

import { jsonText, type Writable } from '../base/json/write.ts';

/**
 * The JSON text of a record, or of any answer, with each number as it was received. `JSON.stringify` writes 1.0 as 1
 * and so breaks the signature of what it is given; for such numbers, and integers beyond 2^53, it throws instead.
 */
export function recordText(record: object): string {
  return jsonText(record as Writable);
}

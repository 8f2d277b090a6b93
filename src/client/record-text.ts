import { jsonText, type Writable } from '../base/json/write.ts';

/**
 * Returns the JSON text of a record or any other answer, with each number as received. `JSON.stringify` would write 1.0
 * as 1 and break signatures; it throws for such numbers, and for integers beyond 2^53.
 */
export function recordText(record: object): string {
  return jsonText(record as Writable);
}

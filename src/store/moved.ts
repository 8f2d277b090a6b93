/** The mark of a state that goes on elsewhere. It is never opened again. */
import { decodeRow, encodeRow } from './rows.ts';

export function encodeMoved(successor: string): Buffer {
  return encodeRow('meta', 'moved', successor);
}

/** Where the state goes on; null when it goes on here. */
export function decodeMoved(row: Buffer | undefined): string | null {
  return row === undefined ? null : (decodeRow('meta', 'moved', row) as string);
}

/** `place` is where the mark was found, as a sentence names it. */
export function assertNotMoved(row: Buffer | undefined, place: string): void {
  const successor = decodeMoved(row);
  if (successor === null) return;
  throw new Error(`The state in ${place} was moved to ${successor}, and goes on there`);
}

/** The mark of a state that goes on elsewhere. It is never opened again. */
import { decodeRow, encodeRow } from './rows.ts';

export function encodeMoved(successor: string): Buffer {
  return encodeRow('meta', 'moved', successor);
}

/** `place` is where the mark was found, as a sentence names it. */
export function assertNotMoved(row: Buffer | undefined, place: string): void {
  if (row === undefined) return;
  const successor = decodeRow('meta', 'moved', row) as string;
  throw new Error(`The state in ${place} was moved to ${successor}, and goes on there`);
}

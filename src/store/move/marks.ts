/** What says of a place that its state goes on elsewhere, or that one is being moved into it. */
import Type from 'typebox';
import Value from 'typebox/value';
import { NetworkIdentity } from '../network-identity.ts';
import { DamagedState, decodeRow, encodeRow } from '../rows.ts';
import type { Arrival, LastEntry } from '../stream/ports.ts';
import { metaChange, type TableChange } from '../tables.ts';

/** Where the state goes on; null when it goes on here. */
export function decodeMoved(row: Buffer | undefined): string | null {
  return row === undefined ? null : (decodeRow('meta', 'moved', row) as string);
}

/** `place` is where the mark was found, as a sentence names it. The state is never opened again. */
export function assertNotMoved(row: Buffer | undefined, place: string): void {
  const successor = decodeMoved(row);
  if (successor === null) return;
  throw new Error(`The state in ${place} was moved to ${successor}, and goes on there`);
}

/** What adds the last entry to a state. */
export function lastChanges({ number, row, totals }: LastEntry): readonly TableChange[] {
  const put = [{ key: number, version: 0, row }];
  return [{ table: 'audit', put }, metaChange([['totals', totals]])];
}

/** What adds it to the old place, and marks that as moved. */
export function retirement(last: LastEntry, successor: string): readonly TableChange[] {
  return [...lastChanges(last), metaChange([['moved', encodeRow('meta', 'moved', successor)]])];
}

const StoredArrival = Type.Object({
  from: Type.String(),
  network: NetworkIdentity,
});

export function encodeArrival(arrival: Arrival): Buffer {
  return encodeRow('meta', 'arriving', arrival);
}

/** Null when there is no such row. */
export function decodeArrival(row: Buffer | undefined): Arrival | null {
  if (row === undefined) return null;
  const arrival = decodeRow('meta', 'arriving', row);
  if (Value.Check(StoredArrival, arrival)) return arrival;
  throw new DamagedState('it does not say what is moved into it');
}

/** `place` is where the mark was found, as a sentence names it. */
export function assertArrived(arrival: Arrival | null, place: string): void {
  if (arrival === null) return;
  throw new Error(
    `A state is being moved into ${place}, from ${arrival.from}; if that was interrupted, repeat mesh-na store move with --resume, or end it with --abandon`,
  );
}

/** The mark of a place into which a state is being moved: nobody serves from it until the move has ended. */
import Type from 'typebox';
import Value from 'typebox/value';
import { NetworkIdentity } from '../network-identity.ts';
import { DamagedState, decodeRow, encodeRow } from '../rows.ts';
import type { Arrival } from './ports.ts';

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

/** What a move needs of the two places between which it moves a state. */
import type { NetworkIdentity } from '../network-identity.ts';
import type { MetaRows, RowReader } from '../stored-rows.ts';
import type { StateSource } from '../stream/ports.ts';

/** The rows of table `meta` that go with the state to another database. */
export const MOVED_META = [
  'network',
  'epoch',
  'shapes',
  'forgotten_times',
  'unstored_times',
  'totals',
] as const;

/** The state at one moment. */
export interface StateReading extends RowReader {
  readonly meta: MetaRows;
  readonly source: StateSource;
}

/** Reads a state while another process writes it. */
export interface StateReader {
  /** The state as of now; ends the reading before. */
  next(): Promise<StateReading>;
  close(): Promise<void>;
}

/** What a place holds that a state is being moved into. */
export interface Arrival {
  /** Where the state comes from. */
  readonly from: string;
  readonly network: NetworkIdentity;
}

/** The last entry of the audit log, by which a state says that it goes on elsewhere. */
export interface LastEntry {
  /** The row of the audit log that holds it alone, by its number. */
  readonly number: number;
  readonly row: Buffer;
  /** The totals with it. */
  readonly totals: Buffer;
}

/**
 * A place into which a state is moved. Nobody can serve from it before `publish`, also after the process that moves
 * the state has died; nor can another process move one there while this one does.
 */
export interface StateReceiver {
  /** What an earlier move has left there; null when there is nothing. */
  readonly arrival: Arrival | null;
  /** Removes what an earlier move has left, and says that a state is being moved here. */
  begin(arrival: Arrival): Promise<void>;
  /** Makes the place hold what the reading holds; returns the number of rows that were not the same. */
  take(reading: StateReading): Promise<number>;
  /** How many wait to serve from the place and have not read yet what was copied first. */
  unready(): Promise<number>;
  /**
   * Adds the last entry, and how the last owner of the old place has ended. Call when nothing is missing but that the
   * old place is given up.
   */
  complete(last: LastEntry, isClosed: boolean): Promise<void>;
  /** Lets the place be served from; call once the old place is given up. */
  publish(isClosed: boolean): Promise<void>;
  /** Leaves the place as it is, for a move that goes on later. */
  leave(): Promise<void>;
  /** Leaves the place as if nothing had ever been moved there. */
  abandon(): Promise<void>;
}

/** The old place, which nobody else can open while it is held. */
export interface HeldState {
  /** Whether its last owner stored everything before it ended. */
  readonly wasClosed: boolean;
  /** In one step: adds the last entry, and marks the state as moved to the successor for good. */
  retire(last: LastEntry, successor: string): Promise<void>;
  /** Gives it free, unchanged unless it was retired. */
  release(): Promise<void>;
}

/** A whole state as it is read from one place and written to another, whatever databases they are. */
import type { Arrival, MetaRows } from '../meta-rows.ts';
import type { NetworkIdentity } from '../network-identity.ts';
import type { StatePosition, TimeRange } from '../store.ts';
import type { TableReader } from '../tables.ts';
import type { Totals } from '../totals.ts';
import type { StreamRows, StreamTable } from './rows.ts';

/** What a state is besides its rows. */
export interface StateFacts extends StatePosition {
  readonly network: NetworkIdentity;
  /** Whether its last owner stored everything before it ended. */
  readonly isClosed: boolean;
  readonly forgottenTimes: readonly TimeRange[];
  readonly unstoredTimes: readonly TimeRange[];
}

/** The state at one moment: a service may write it meanwhile, and nothing of that is seen. */
export interface StateReading {
  readonly facts: StateFacts;
  /** What the state is in, such as `lmdb`, and the version of its layout. */
  readonly database: { readonly backend: string; readonly schemaVersion: number };
  /** The rows in the order of their keys, in batches; any number of times. Rejects when they are damaged. */
  rows<Table extends StreamTable>(table: Table): AsyncIterable<readonly StreamRows[Table][]>;
  /** The rows as they are stored. */
  readonly tables: TableReader;
  readonly meta: MetaRows;
}

/** Reads one moment after the other. */
export interface StateReader {
  /** The state as of now; ends the reading before. Rejects when there is none, or when it is damaged. */
  next(): Promise<StateReading>;
  close(): Promise<void>;
}

export interface StateSource extends StateReading {
  close(): Promise<void>;
}

/** The only reading of a reader. */
export async function sourceOf(reader: StateReader): Promise<StateSource> {
  try {
    return { ...(await reader.next()), close: () => reader.close() };
  } catch (cause) {
    await reader.close();
    throw cause;
  }
}

/** A place without state. What is written there is a state only once `finish` resolves. */
export interface StateTarget {
  write<Table extends StreamTable>(table: Table, rows: readonly StreamRows[Table][]): Promise<void>;
  finish(facts: StateFacts): Promise<void>;
  /** Leaves the place as it was. */
  abandon(): Promise<void>;
}

/** The last entry of the audit log, by which a state says that it goes on elsewhere. */
export interface LastEntry {
  /** The row of the audit log that holds it alone, by its number. */
  readonly number: number;
  readonly row: Buffer;
  /** The totals with it. */
  readonly totals: Totals;
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

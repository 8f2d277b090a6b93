/** Interfaces for reading a complete state from one place and writing it to another, independent of the database. */
import type { MetaRows } from '../meta-rows.ts';
import type { NetworkIdentity } from '../network-identity.ts';
import type { Totals } from '../rows.ts';
import type { StatePosition, TimeRange } from '../store.ts';
import type { TableReader } from '../tables.ts';
import type { StreamRows, StreamTable } from './rows.ts';

/** The metadata of a state. */
export interface StateFacts extends StatePosition {
  readonly network: NetworkIdentity;
  /** Whether the last owner closed the state cleanly. */
  readonly isClosed: boolean;
  readonly forgottenTimes: readonly TimeRange[];
  readonly unstoredTimes: readonly TimeRange[];
}

/** A snapshot of the state. A service may continue to write the state, but the snapshot does not change. */
export interface StateReading {
  readonly facts: StateFacts;
  /** The kind of database, such as `lmdb`, and its schema version. */
  readonly database: { readonly backend: string; readonly schemaVersion: number };
  /** The rows in key order, in batches. Can be called repeatedly. Rejects if the rows are damaged. */
  rows<Table extends StreamTable>(table: Table): AsyncIterable<readonly StreamRows[Table][]>;
  /** The rows as they are stored. */
  readonly tables: TableReader;
  readonly meta: MetaRows;
}

export interface StateSource extends StateReading {
  close(): Promise<void>;
}

/** A place without state. What is written there becomes a state only when `finish` resolves. */
export interface StateTarget {
  write<Table extends StreamTable>(table: Table, rows: readonly StreamRows[Table][]): Promise<void>;
  finish(facts: StateFacts): Promise<void>;
  /** Undoes everything that was written. */
  abandon(): Promise<void>;
}

/** The last audit entry of the old place, which records that the state continues elsewhere. */
export interface LastEntry {
  /** The number of the entry, which is also the key of its row: the row contains only this entry. */
  readonly number: number;
  readonly row: Buffer;
  /** The totals that include this entry. */
  readonly totals: Totals;
}

/**
 * A place into which a state is moved. Nobody can serve from it before `publish`, even if the moving process dies, and
 * no other process can move a state there at the same time.
 */
export interface StateReceiver {
  /** Removes the remains of an earlier move, and copies every row. */
  take(reading: StateReading): Promise<void>;
  /** Reads what was copied, also by an earlier move; rejects if that is not a whole state. */
  taken(): Promise<StateSource>;
  /**
   * Adds the last entry, and whether the last owner closed the old place cleanly. All of it is on disk when this
   * resolves. Call when the only remaining step is to retire the old place.
   */
  complete(last: LastEntry, isClosed: boolean): Promise<void>;
  /** Makes the place available for serving, and releases it. Call after the old place was retired. */
  publish(isClosed: boolean): Promise<void>;
  /** Releases the place as it is, so that a repeated move can go on from it. */
  leave(): Promise<void>;
}

/** The old place of a state, which nobody else can open while it is held. */
export interface HeldState {
  /** Whether the last owner closed the state cleanly. */
  readonly wasClosed: boolean;
  /** Where the state goes on; null if it has not been moved. */
  readonly movedTo: string | null;
  /** Atomically adds the last entry and permanently marks the state as moved to the successor. */
  retire(last: LastEntry, successor: string): Promise<void>;
  /** Releases the place; the state is unchanged unless it was retired. */
  release(): Promise<void>;
}

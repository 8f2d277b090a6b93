/**
 * A state that is copied while it is written: all of its rows, and then again and again those that have changed since.
 * Rows are taken as they are stored, with their checksums, since every database stores the same bytes under a key.
 */
import type { NetworkIdentity } from '../network-identity.ts';
import type { RowKey, TableName } from '../rows.ts';
import type { StateSource } from '../stream/ports.ts';

/** In the order in which they are copied. */
export const TRAIL_TABLES = ['subjects', 'nonces', 'answers', 'audit', 'liveness'] as const;

export type TrailTable = (typeof TRAIL_TABLES)[number] & TableName;

/** What the state says of itself, beside its tables, and what goes with it to another database. */
export const TRAIL_META = [
  'network',
  'epoch',
  'shapes',
  'forgotten_times',
  'unstored_times',
  'totals',
] as const;

export type TrailMetaKey = (typeof TRAIL_META)[number];
export type TrailMeta = ReadonlyMap<TrailMetaKey, Buffer>;

export interface RowChange {
  readonly key: RowKey;
  /** 0 in tables without versions. */
  readonly version: number;
  /** Null for a row that is not stored any more. */
  readonly row: Buffer | null;
}

/** The state at one moment, as it differs from the reading before. */
export interface TrailReading {
  readonly meta: TrailMeta;
  /** Whether `changes` are all rows, because there was no reading before. */
  readonly isWhole: boolean;
  /** Each row once. Rows of later tables may have been removed with those of earlier ones. */
  changes(table: TrailTable): AsyncIterable<readonly RowChange[]>;
  /** Everything at the same moment; until the next reading. */
  readonly source: StateSource;
}

export interface StateTrail {
  /** Everything the first time, and then what has changed since. Call when nothing more is read of the one before. */
  next(): Promise<TrailReading>;
  close(): Promise<void>;
}

/** What a place holds that a state is being moved into. */
export interface Arrival {
  /** Where the state comes from. */
  readonly from: string;
  readonly network: NetworkIdentity;
  /** Whether nothing is missing but that the old place is given up. */
  readonly isComplete: boolean;
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
  begin(arrival: Pick<Arrival, 'from' | 'network'>): Promise<void>;
  /** Makes the place hold what the reading says; returns the number of rows that were changed. */
  take(reading: TrailReading): Promise<number>;
  /** How many wait to serve from the place and have not read yet what was copied first. */
  unready(): Promise<number>;
  /** What has arrived, as it is now and stays for whoever reads it. */
  openSource(): Promise<StateSource>;
  /** Adds the last entry, and says that nothing is missing. */
  complete(last: LastEntry): Promise<void>;
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

/** A whole state at one revision, as it is read from one database and written to another. */
import type { NetworkIdentity } from '../network-identity.ts';
import type { TimeRange } from '../store.ts';
import type { StreamRows, StreamTable } from './rows.ts';

/** What a state is besides its rows. */
export interface StateFacts {
  readonly network: NetworkIdentity;
  /** Counts the restores: the state of a later epoch replaces that of an earlier one. */
  readonly epoch: number;
  readonly revision: number;
  readonly auditLength: number;
  readonly auditHead: string;
  /** Whether its last owner stored everything before it ended. */
  readonly isClosed: boolean;
  readonly forgottenTimes: readonly TimeRange[];
  readonly unstoredTimes: readonly TimeRange[];
}

/** Reads while a service writes, and sees nothing of what it writes meanwhile. */
export interface StateSource {
  readonly facts: StateFacts;
  /** What the state is in, such as `lmdb`, and the version of its layout. */
  readonly database: { readonly backend: string; readonly schemaVersion: number };
  /** The rows in the order of their keys, in batches; any number of times. Rejects when they are damaged. */
  rows<Table extends StreamTable>(table: Table): AsyncIterable<readonly StreamRows[Table][]>;
  close(): Promise<void>;
}

/** A place without state. What is written there is a state only once `finish` resolves. */
export interface StateTarget {
  write<Table extends StreamTable>(table: Table, rows: readonly StreamRows[Table][]): Promise<void>;
  finish(facts: StateFacts): Promise<void>;
  /** Leaves the place as it was. */
  abandon(): Promise<void>;
}

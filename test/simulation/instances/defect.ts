import type { HeartbeatSessions } from '../../../src/edge/auth/session.ts';
import type { Call } from '../../../src/protocol/contract/calls.ts';
import type { Store } from '../../../src/store/store.ts';

/** What a wrong program would do. */
export interface ProcessDefect {
  /** Answers by its own clock, without asking whether it is still the holder. */
  readonly answersUnconfirmed?: boolean;
  /** Takes over whatever the database has, without remembering what it has seen. */
  readonly remembersNothing?: boolean;
  /** Activates a key whoever holds it. */
  readonly countsNoInstances?: boolean;
  /** Signs with the key that it was started with, whatever the state says. */
  readonly forgetsKeys?: boolean;
  /** Shows the genesis block that it knows. */
  readonly asksNobodyForGenesis?: boolean;
  /** Changes how an edge judges and begins sessions. */
  readonly sessions?: (sessions: HeartbeatSessions) => HeartbeatSessions;
  /** Changes what the writer reads and writes. */
  readonly store?: (store: Store) => Store;
  /** Changes what an edge asks the writer. */
  readonly call?: (call: Call) => Call;
}

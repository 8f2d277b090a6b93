import type { HeartbeatSessions } from '../../../src/edge/auth/session.ts';
import type { Call } from '../../../src/protocol/contract/calls.ts';
import type { Store } from '../../../src/store/store.ts';

/** How a faulty program would behave. */
export interface ProcessDefect {
  /** Answers by its own clock, also what was forwarded after its term, without confirming that it is still active. */
  readonly answersUnconfirmed?: boolean;
  /** Takes over any database state, without remembering what it has seen. */
  readonly remembersNothing?: boolean;
  /** Activates a key no matter which instances have it. */
  readonly countsNoInstances?: boolean;
  /** Keeps signing with the key that it started with, regardless of the state. */
  readonly forgetsKeys?: boolean;
  /** Serves the genesis block that it has, without requesting the current one. */
  readonly asksNobodyForGenesis?: boolean;
  /** Changes how an edge judges and starts sessions. */
  readonly sessions?: (sessions: HeartbeatSessions) => HeartbeatSessions;
  /** Changes what the active instance reads and writes. */
  readonly store?: (store: Store) => Store;
  /** Sends a request again that may have been carried out, whatever it asks for. */
  readonly repeatsAnything?: boolean;
  /** Serves the last answers that it has passed on as if they were current. */
  readonly unmarkedCopies?: boolean;
  /** Changes what an edge asks the authority. */
  readonly call?: (call: Call) => Call;
}

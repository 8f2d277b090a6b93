/** The two places of a move, whatever databases they are. */
import type { HeldState, StateReader, StateReceiver } from '../../store/move/ports.ts';
import type { StateSource } from '../../store/stream/ports.ts';

export interface Place {
  /** As messages and the audit log name it, without a password. */
  readonly shown: string;
  /** Reads the whole state as of now, also one that has arrived without being let go of. */
  openSource(): Promise<StateSource>;
  /** Whether it has a state that is not on its way. */
  isServable(): Promise<boolean>;
  /** Where its state goes on; null when it goes on here, or when there is none. */
  movedTo(): Promise<string | null>;
  /** Reads the state again and again while it is served. */
  openReader(): Promise<StateReader>;
  /** Asks the process that serves the state to stop; any number of times. */
  ask(): Promise<Asked>;
  /** Null while another process has the state. */
  hold(): Promise<HeldState | null>;
  /** Receives a state; throws one clear sentence when there is one, or when the place is in use. */
  receive(): Promise<StateReceiver>;
}

export interface Asked {
  /** The name of the process that serves the state; null when that is not known. */
  readonly holder: string | null;
  /** False when somebody else has to stop it. */
  readonly isAsked: boolean;
}

/**
 * A compromised node key whose certificates do not record the compromise [core-4-8]: all of them had already been
 * revoked for other reasons, which stay as published. Final: a key that others may know is never trusted again.
 */
import { oneRecordMachine } from './one-record.ts';

export interface NodeKey {
  readonly nodePublicKey: string;
  /** Milliseconds since the epoch. */
  readonly compromisedAt: number;
}

export const nodeKeyMachine = oneRecordMachine<NodeKey, 'compromised'>({
  id: 'node-key',
  none: { nodePublicKey: '', compromisedAt: 0 },
  state: 'compromised',
  isFinal: true,
});

/**
 * A compromised node key whose certificates do not record the compromise [core-4-8]: all of them had already been
 * revoked for other reasons, which stay as published. Final: a key that others may know is never trusted again.
 */
import { setup } from 'xstate';

export interface NodeKey {
  readonly nodePublicKey: string;
  /** Milliseconds since the epoch. */
  readonly compromisedAt: number;
}

type NodeKeyEvent = { readonly type: 'compromise'; readonly key: NodeKey };

const machine = setup({
  types: {} as {
    context: NodeKey;
    events: NodeKeyEvent;
    emitted: { readonly type: 'compromised' | 'already_compromised' };
  },
});

export const nodeKeyMachine = machine.createMachine({
  id: 'node-key',
  initial: 'absent',
  context: { nodePublicKey: '', compromisedAt: 0 },
  states: {
    absent: {
      on: {
        compromise: {
          target: 'compromised',
          actions: [
            machine.assign(({ event }) => event.key),
            machine.emit({ type: 'compromised' }),
          ],
        },
      },
    },
    compromised: { on: { compromise: { actions: machine.emit({ type: 'already_compromised' }) } } },
  },
});

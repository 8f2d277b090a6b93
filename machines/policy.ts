/** Policy version (spec, state table): the first read of a network without policy makes the default. */
import { assign, emit, setup } from 'xstate';
import type { PolicyManifest } from '../src/records/policy-manifest.ts';

export interface Policy {
  readonly manifest: PolicyManifest | null;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

export type PolicyEvent = {
  readonly type: 'first_read';
  readonly at: number;
  readonly manifest: PolicyManifest;
};

export const policyMachine = setup({
  types: {} as {
    context: Policy;
    events: PolicyEvent;
    emitted: { readonly type: 'created' | 'already_active' };
  },
}).createMachine({
  id: 'policy',
  initial: 'absent',
  context: { manifest: null, createdAt: 0 },
  states: {
    absent: {
      on: {
        first_read: {
          target: 'active',
          actions: [
            assign(({ event }) => ({ manifest: event.manifest, createdAt: event.at })),
            emit({ type: 'created' }),
          ],
        },
      },
    },
    active: { on: { first_read: { actions: emit({ type: 'already_active' }) } } },
  },
});

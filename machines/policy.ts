/**
 * Policy version [service-states-policy]. Publishing a version, or rolling back to it, activates it and
 * retires the active one. The first read of a network without a policy creates the default.
 */
import { emit, setup } from 'xstate';
import type { PolicyManifest } from '../src/protocol/records/policy-manifest.ts';
import type { Refused } from './refused.ts';

export interface Policy {
  readonly manifest: PolicyManifest | null;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

type PolicyEvent =
  | {
      readonly type: 'first_read' | 'publish';
      readonly at: number;
      readonly manifest: PolicyManifest;
    }
  | { readonly type: 'roll_back' }
  /** Another version became active. */
  | { readonly type: 'retire' };

type PolicyRefusal = 'policy_not_found';

const machine = setup({
  types: {} as {
    context: Policy;
    events: PolicyEvent;
    emitted: Refused<PolicyRefusal> | { readonly type: 'activated' | 'retired' };
  },
});

const publish = {
  target: 'active',
  actions: [
    machine.assign(({ event }) =>
      'manifest' in event ? { manifest: event.manifest, createdAt: event.at } : {},
    ),
    machine.emit({ type: 'activated' }),
  ],
};

export const policyMachine = machine.createMachine({
  id: 'policy',
  initial: 'absent',
  context: { manifest: null, createdAt: 0 },
  states: {
    absent: {
      on: {
        first_read: publish,
        publish,
        roll_back: { actions: emit({ type: 'refused', refusal: 'policy_not_found' }) },
      },
    },
    active: {
      on: {
        first_read: { actions: emit({ type: 'activated' }) },
        publish,
        roll_back: { actions: emit({ type: 'activated' }) },
        retire: { target: 'retired', actions: emit({ type: 'retired' }) },
      },
    },
    retired: {
      on: {
        publish,
        roll_back: { target: 'active', actions: emit({ type: 'activated' }) },
      },
    },
  },
});

/**
 * Policy version [service-states-policy]. Publishing a version, or rolling back to it, activates it and
 * retires the active one. The first read of a network without a policy creates the default.
 */
import { assertEvent, assign, emit, setup } from 'xstate';
import type { PolicyManifest } from '../src/protocol/records/policy-manifest.ts';
import { type Refused, refused } from './refused.ts';

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

export const policyMachine = setup({
  types: {} as {
    context: Policy;
    events: PolicyEvent;
    emitted: Refused<PolicyRefusal> | { readonly type: 'activated' | 'retired' };
  },
  actions: {
    keep: assign(({ event }) => {
      assertEvent(event, ['first_read', 'publish']);
      return { manifest: event.manifest, createdAt: event.at };
    }),
  },
}).createMachine({
  id: 'policy',
  initial: 'absent',
  context: { manifest: null, createdAt: 0 },
  on: {
    publish: {
      target: '.active',
      actions: ['keep', emit({ type: 'activated' })],
    },
  },
  states: {
    absent: {
      on: {
        first_read: {
          target: 'active',
          actions: ['keep', emit({ type: 'activated' })],
        },
        roll_back: { actions: emit(refused('policy_not_found')) },
      },
    },
    active: {
      on: {
        first_read: { actions: emit({ type: 'activated' }) },
        roll_back: { actions: emit({ type: 'activated' }) },
        retire: { target: 'retired', actions: emit({ type: 'retired' }) },
      },
    },
    retired: {
      on: { roll_back: { target: 'active', actions: emit({ type: 'activated' }) } },
    },
  },
});

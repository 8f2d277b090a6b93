/**
 * One use of a capability proof [trust-4-5]: a proof id is nullified at most once, no matter what a later proof with
 * the same id contains.
 */
import { assign, emit, setup } from 'xstate';
import { type Refused, refused } from './refused.ts';

export interface Nullifier {
  /** Hex SHA-256 of the canonical proof. */
  readonly proofDigest: string;
  readonly commitmentId: string;
  readonly nullifierId: string;
  /** Milliseconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

type NullifierEvent = {
  readonly type: 'issue';
  readonly nullifier: Nullifier;
  /** Whether the proof's leaf hash matches the capability it reveals. */
  readonly leafMatches: boolean;
};

export const nullifierMachine = setup({
  types: {} as {
    context: Nullifier;
    events: NullifierEvent;
    emitted: Refused<'nullifier_failed'> | { readonly type: 'issued' };
    tags: 'terminal';
  },
  guards: { leafDiffers: ({ event }) => !event.leafMatches },
}).createMachine({
  id: 'capability-nullifier',
  initial: 'absent',
  context: { proofDigest: '', commitmentId: '', nullifierId: '', issuedAt: 0, expiresAt: 0 },
  states: {
    absent: {
      on: {
        // The reason becomes the cause of the refusal.
        issue: [
          {
            guard: 'leafDiffers',
            actions: emit(refused('nullifier_failed', 'leaf_hash_mismatch')),
          },
          {
            target: 'issued',
            actions: [assign(({ event }) => event.nullifier), emit({ type: 'issued' })],
          },
        ],
      },
    },
    issued: {
      tags: 'terminal',
      on: { issue: { actions: emit(refused('nullifier_failed', 'already_issued')) } },
    },
  },
});

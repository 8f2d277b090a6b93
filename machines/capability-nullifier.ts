/**
 * One use of a capability proof [trust-4-5]: a proof id is nullified at most once, no matter what a later proof with
 * the same id contains.
 */
import { setup } from 'xstate';
import type { Refused } from './refused.ts';

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

/** The reason becomes the cause of the refusal. */
type NullifierCause = 'already_issued' | 'leaf_hash_mismatch';

const machine = setup({
  types: {} as {
    context: Nullifier;
    events: NullifierEvent;
    emitted: Refused<'nullifier_failed'> | { readonly type: 'issued' };
  },
  guards: { leafDiffers: ({ event }) => !event.leafMatches },
});

function refuse(cause: NullifierCause) {
  return machine.emit({ type: 'refused', refusal: 'nullifier_failed', reason: cause });
}

export const nullifierMachine = machine.createMachine({
  id: 'capability-nullifier',
  initial: 'absent',
  context: { proofDigest: '', commitmentId: '', nullifierId: '', issuedAt: 0, expiresAt: 0 },
  states: {
    absent: {
      on: {
        issue: [
          { guard: 'leafDiffers', actions: refuse('leaf_hash_mismatch') },
          {
            target: 'issued',
            actions: [
              machine.assign(({ event }) => event.nullifier),
              machine.emit({ type: 'issued' }),
            ],
          },
        ],
      },
    },
    issued: { on: { issue: { actions: refuse('already_issued') } } },
  },
});

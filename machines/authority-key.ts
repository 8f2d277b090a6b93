/**
 * Key of the authority [authority-keys-8]. A key is staged with the succession that leads to it; the key that it
 * replaces keeps signing as well until the overlap ends, unless it was stolen. A key never becomes the authority's a second
 * time, except by the rollback that came with its replacement.
 */
import { assertEvent, assign, emit, setup } from 'xstate';
import type { AuthoritySuccession } from '../src/protocol/records/authority-succession.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { type Refused, refused } from './refused.ts';

/** A statement with the genesis block that takes effect with it. */
interface KeyChange {
  readonly statement: AuthoritySuccession;
  readonly genesis: GenesisBlock;
}

export interface AuthorityKey {
  /** The statement that leads to the key; null for the first key of the network. */
  readonly statement: AuthoritySuccession | null;
  /** The genesis block that names the key; null before the key is founded or staged. */
  readonly genesis: GenesisBlock | null;
  /** The way back to the key before; null if there is none, or it was destroyed at the end of the overlap. */
  readonly rollBack: KeyChange | null;
  /** When the key took over, in milliseconds since the epoch; null for the first key, or before it does. */
  readonly since: number | null;
  /** The first revocation list that the key issued; null while it has issued none. */
  readonly crlSequence: number | null;
  /** When the key was rolled back, in milliseconds since the epoch; null if it was not. */
  readonly rolledBackAt: number | null;
  /** The first revocation list that the key before issued again; null unless the key was rolled back. */
  readonly rolledBackFrom: number | null;
  /** Since when the key does not sign, in milliseconds since the epoch; null while it may. */
  readonly until: number | null;
}

export type AuthorityKeyEvent =
  /** The key of the genesis block gets a state when its first successor is staged. */
  | { readonly type: 'found'; readonly genesis: GenesisBlock }
  | {
      readonly type: 'stage';
      readonly statement: AuthoritySuccession;
      readonly genesis: GenesisBlock;
      readonly rollBack: KeyChange | null;
      readonly isOtherStaged: boolean;
      /** Why the succession is not in order; null if it is. */
      readonly problem: string | null;
    }
  | { readonly type: 'cancel' }
  | {
      readonly type: 'activate';
      readonly at: number;
      /** Whether `activates_at` has passed. */
      readonly isDue: boolean;
      readonly isHeld: boolean;
      readonly crlSequence: number;
    }
  /** Another key takes over. */
  | { readonly type: 'replace'; readonly at: number; readonly kind: 'planned' | 'compromise' }
  | {
      readonly type: 'roll_back';
      readonly at: number;
      /** Whether the key is current because the one after it was rolled back. */
      readonly isRolledBack: boolean;
      /** Whether `overlap_until` has passed. */
      readonly isOver: boolean;
      /** Whether the key before is held. */
      readonly isHeld: boolean;
      readonly crlSequence: number;
    }
  /** The key after this one was rolled back. */
  | { readonly type: 'return' }
  | {
      readonly type: 'finish';
      readonly at: number;
      /** The nodes that have not followed; null if the overlap ends by itself. */
      readonly behind: number | null;
      readonly despite: number;
    }
  /** The overlap with the key before has ended, so there is no way back. */
  | { readonly type: 'settle' };

type AuthorityKeyRefusal =
  | 'succession_staged'
  | 'succession_rejected'
  | 'succession_not_staged'
  | 'activation_too_early'
  | 'authority_key_not_held'
  | 'roll_back_impossible'
  | 'no_overlap'
  | 'nodes_have_not_followed';

const none: AuthorityKey = {
  statement: null,
  genesis: null,
  rollBack: null,
  since: null,
  crlSequence: null,
  rolledBackAt: null,
  rolledBackFrom: null,
  until: null,
};

export const authorityKeyMachine = setup({
  types: {} as {
    context: AuthorityKey;
    events: AuthorityKeyEvent;
    emitted:
      | Refused<AuthorityKeyRefusal>
      | {
          readonly type:
            | 'founded'
            | 'staged'
            | 'canceled'
            | 'activated'
            | 'replaced'
            | 'rolled_back'
            | 'returned'
            | 'retired'
            | 'settled';
        };
    tags: 'terminal';
  },
  guards: {
    otherStaged: ({ event }) => {
      assertEvent(event, 'stage');
      return event.isOtherStaged;
    },
    notInOrder: ({ event }) => {
      assertEvent(event, 'stage');
      return event.problem !== null;
    },
    early: ({ event }) => {
      assertEvent(event, 'activate');
      return !event.isDue;
    },
    notHeld: ({ event }) => {
      assertEvent(event, ['activate', 'roll_back']);
      return !event.isHeld;
    },
    stolen: ({ event }) => {
      assertEvent(event, 'replace');
      return event.kind === 'compromise';
    },
    rolledBack: ({ event }) => {
      assertEvent(event, 'roll_back');
      return event.isRolledBack;
    },
    first: ({ context }) => context.statement === null,
    replacedStolen: ({ context }) => context.statement?.kind === 'compromise',
    overlapOver: ({ context, event }) => {
      assertEvent(event, 'roll_back');
      return event.isOver || context.rollBack === null;
    },
    nodesBehind: ({ event: end }) => {
      assertEvent(end, 'finish');
      return end.behind !== null && end.behind !== end.despite;
    },
  },
}).createMachine({
  id: 'authority-key',
  initial: 'absent',
  context: none,
  on: { stage: { actions: emit(refused('succession_rejected', 'key_used_before')) } },
  states: {
    absent: {
      on: {
        found: {
          target: 'current',
          actions: [assign(({ event }) => ({ genesis: event.genesis })), emit({ type: 'founded' })],
        },
        stage: [
          { guard: 'otherStaged', actions: emit(refused('succession_staged')) },
          {
            guard: 'notInOrder',
            actions: emit(({ event }) => refused('succession_rejected', event.problem ?? '')),
          },
          {
            target: 'staged',
            actions: [
              assign(({ event: { statement, genesis, rollBack } }) => ({
                statement,
                genesis,
                rollBack,
              })),
              emit({ type: 'staged' }),
            ],
          },
        ],
        cancel: { actions: emit(refused('succession_not_staged')) },
        activate: { actions: emit(refused('succession_not_staged')) },
        roll_back: { actions: emit(refused('roll_back_impossible', 'no_succession')) },
        finish: { actions: emit(refused('no_overlap')) },
      },
    },
    staged: {
      on: {
        stage: { actions: emit(refused('succession_staged')) },
        cancel: { actions: emit({ type: 'canceled' }) },
        activate: [
          { guard: 'early', actions: emit(refused('activation_too_early')) },
          { guard: 'notHeld', actions: emit(refused('authority_key_not_held')) },
          {
            target: 'current',
            actions: [
              assign(({ event: { at, crlSequence } }) => ({ since: at, crlSequence })),
              emit({ type: 'activated' }),
            ],
          },
        ],
      },
    },
    current: {
      on: {
        replace: [
          {
            guard: 'stolen',
            target: 'distrusted',
            actions: [
              assign(({ event }) => ({ rollBack: null, until: event.at })),
              emit({ type: 'replaced' }),
            ],
          },
          {
            target: 'previous',
            actions: [assign({ rollBack: null }), emit({ type: 'replaced' })],
          },
        ],
        roll_back: [
          { guard: 'rolledBack', actions: emit(refused('roll_back_impossible', 'rolled_back')) },
          { guard: 'first', actions: emit(refused('roll_back_impossible', 'no_succession')) },
          { guard: 'replacedStolen', actions: emit(refused('roll_back_impossible', 'compromise')) },
          { guard: 'overlapOver', actions: emit(refused('roll_back_impossible', 'overlap_ended')) },
          { guard: 'notHeld', actions: emit(refused('authority_key_not_held')) },
          {
            target: 'previous',
            actions: [
              assign(({ event: { at, crlSequence } }) => ({
                rolledBackAt: at,
                rolledBackFrom: crlSequence,
              })),
              emit({ type: 'rolled_back' }),
            ],
          },
        ],
        settle: { actions: [assign({ rollBack: null }), emit({ type: 'settled' })] },
      },
    },
    previous: {
      on: {
        return: { target: 'current', actions: emit({ type: 'returned' }) },
        finish: [
          { guard: 'nodesBehind', actions: emit(refused('nodes_have_not_followed')) },
          {
            target: 'retired',
            actions: [assign(({ event }) => ({ until: event.at })), emit({ type: 'retired' })],
          },
        ],
      },
    },
    distrusted: { tags: 'terminal' },
    retired: { tags: 'terminal' },
  },
});

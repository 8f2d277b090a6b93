/**
 * Recognition treaty [service-states-treaty]. Expiry is not a state: it follows from the clock. A repeated
 * revocation may change the reason, for example to name the successor, but never the time of the first one. A treaty
 * that follows its subject to another authority key is replaced by a successor [core-4-13-1].
 */
import { assertEvent, assign, emit, setup } from 'xstate';
import type { ChainReason } from '../src/protocol/records/authority-chain.ts';
import type { AuthoritySuccession } from '../src/protocol/records/authority-succession.ts';
import { type Refused, refused } from './refused.ts';

/** Instants are milliseconds since the epoch. */
export interface Treaty {
  /** The signed record, as served. */
  readonly json: string;
  readonly issuer: string;
  readonly subject: string;
  readonly subjectKeys: readonly string[];
  readonly issuedAt: number;
  readonly validFrom: string;
  readonly expiresAt: number;
  readonly revokedAt: number | null;
  readonly revocationReason: string | null;
  /** The successions of the subject that were followed; empty if the operator named the keys. */
  readonly followed: readonly AuthoritySuccession[];
  /** Where the authority of the subject is fetched from; absent or null if it is not. It is no part of the record. */
  readonly endpoint?: string | null;
}

export interface Following {
  readonly type: 'follow';
  readonly at: number;
  readonly successorId: string;
  /** Why the chain cannot be followed; null if it can. */
  readonly problem: ChainReason | null;
  /** Whether the chain says more than the treaty has followed, or leads to other keys. */
  readonly isNews: boolean;
}

type TreatyEvent =
  | Following
  | { readonly type: 'issue'; readonly treaty: Treaty }
  | { readonly type: 'renew'; readonly at: number; readonly successorId: string }
  | { readonly type: 'setEndpoint'; readonly endpoint: string | null }
  | { readonly type: 'revoke'; readonly at: number; readonly reason: string };

type TreatyRefusal =
  | 'treaty_not_found'
  | 'treaty_revoked'
  | 'treaty_expired'
  | 'chain_rejected'
  | 'nothing_to_follow';

/** A treaty is in force while at least one full second is left. */
export function lastInstantInForce({ expiresAt }: Pick<Treaty, 'expiresAt'>): number {
  return expiresAt - 1000;
}

const none: Treaty = {
  json: '',
  issuer: '',
  subject: '',
  subjectKeys: [],
  issuedAt: 0,
  validFrom: '',
  expiresAt: 0,
  revokedAt: null,
  revocationReason: null,
  followed: [],
};

export const treatyMachine = setup({
  types: {} as {
    context: Treaty;
    events: TreatyEvent;
    emitted:
      | Refused<TreatyRefusal>
      | { readonly type: 'issued' | 'revoked' | 'replaced' | 'endpoint_set' };
    tags: 'terminal';
  },
  guards: {
    isOver: ({ context, event }) => {
      assertEvent(event, 'follow');
      return event.at > lastInstantInForce(context);
    },
    isRejected: ({ event }) => {
      assertEvent(event, 'follow');
      return event.problem !== null;
    },
    isNoNews: ({ event }) => {
      assertEvent(event, 'follow');
      return !event.isNews;
    },
  },
}).createMachine({
  id: 'recognition-treaty',
  initial: 'absent',
  context: none,
  states: {
    absent: {
      on: {
        issue: {
          target: 'active',
          actions: [assign(({ event }) => event.treaty), emit({ type: 'issued' })],
        },
        revoke: { actions: emit(refused('treaty_not_found')) },
        follow: { actions: emit(refused('treaty_not_found')) },
        setEndpoint: { actions: emit(refused('treaty_not_found')) },
        renew: { actions: emit(refused('treaty_not_found')) },
      },
    },
    active: {
      on: {
        setEndpoint: {
          actions: [
            assign(({ event }) => ({ endpoint: event.endpoint })),
            emit({ type: 'endpoint_set' }),
          ],
        },
        revoke: {
          target: 'revoked',
          actions: [
            assign(({ event }) => ({ revokedAt: event.at, revocationReason: event.reason })),
            emit({ type: 'revoked' }),
          ],
        },
        renew: {
          target: 'revoked',
          actions: [
            assign(({ event }) => ({
              revokedAt: event.at,
              revocationReason: `renewed_by:${event.successorId}`,
            })),
            emit({ type: 'replaced' }),
          ],
        },
        follow: [
          { guard: 'isOver', actions: emit(refused('treaty_expired')) },
          { guard: 'isRejected', actions: emit(refused('chain_rejected')) },
          { guard: 'isNoNews', actions: emit(refused('nothing_to_follow')) },
          {
            target: 'revoked',
            actions: [
              assign(({ event }) => ({
                revokedAt: event.at,
                revocationReason: `replaced_by:${event.successorId}`,
              })),
              emit({ type: 'replaced' }),
            ],
          },
        ],
      },
    },
    revoked: {
      tags: 'terminal',
      on: {
        follow: { actions: emit(refused('treaty_revoked')) },
        setEndpoint: { actions: emit(refused('treaty_revoked')) },
        renew: { actions: emit(refused('treaty_revoked')) },
        revoke: {
          actions: [
            assign(({ event }) => ({ revocationReason: event.reason })),
            emit({ type: 'revoked' }),
          ],
        },
      },
    },
  },
});

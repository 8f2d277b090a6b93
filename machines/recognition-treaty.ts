/**
 * Recognition treaty [service-states-treaty]. Expiry is not a state: it follows from the clock. A repeated
 * revocation may change the reason, for example to name the successor, but never the time of the first one.
 */
import { assign, emit, setup } from 'xstate';
import type { Refused } from './refused.ts';

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
}

export type TreatyEvent =
  | { readonly type: 'issue'; readonly treaty: Treaty }
  | { readonly type: 'revoke'; readonly at: number; readonly reason: string };

export type TreatyRefusal = 'treaty_not_found';

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
};

export const treatyMachine = setup({
  types: {} as {
    context: Treaty;
    events: TreatyEvent;
    emitted: Refused<TreatyRefusal> | { readonly type: 'issued' | 'revoked' };
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
        revoke: { actions: emit({ type: 'refused', refusal: 'treaty_not_found' }) },
      },
    },
    active: {
      on: {
        revoke: {
          target: 'revoked',
          actions: [
            assign(({ event }) => ({ revokedAt: event.at, revocationReason: event.reason })),
            emit({ type: 'revoked' }),
          ],
        },
      },
    },
    revoked: {
      on: {
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

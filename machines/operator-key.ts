/**
 * Operator key ([service-operator-authentication]; order of checks from [core-2-3] and [core-4-9]).
 * Revocation is terminal; the last usable key cannot be revoked.
 */
import { assign, emit, setup } from 'xstate';
import type { Refused } from './refused.ts';

export type Tier = 'standard' | 'privileged';

/** Instants are milliseconds since the epoch. */
export interface OperatorKey {
  readonly tier: Tier;
  readonly revokedAt: number | null;
  readonly reason: string | null;
  readonly revokedBy: string | null;
}

export type OperatorKeyEvent =
  | { readonly type: 'configure'; readonly tier: Tier }
  | {
      readonly type: 'authenticate';
      /** `valid`, or why the request's headers, timestamp, nonce or signature fail. */
      readonly proof: string;
      readonly requiredTier: Tier;
    }
  | {
      readonly type: 'revoke';
      readonly at: number;
      readonly reason: string;
      readonly by: string;
      /** Configured keys of any tier, other than this one, that are not revoked. */
      readonly otherUsableKeys: number;
    };

export type OperatorKeyRefusal =
  | 'unknown_admin_key'
  | 'admin_auth_failed'
  | 'insufficient_operator_tier'
  | 'unknown_operator_key'
  | 'last_active_operator_key';

const none: OperatorKey = { tier: 'standard', revokedAt: null, reason: null, revokedBy: null };

const machine = setup({
  types: {} as {
    context: OperatorKey;
    events: OperatorKeyEvent;
    emitted:
      | Refused<OperatorKeyRefusal>
      | { readonly type: 'authenticated' | 'revoked' | 'already_revoked' };
  },
  guards: {
    headersFail: ({ event }) =>
      event.type === 'authenticate' &&
      (event.proof === 'missing_headers' || event.proof === 'oversized_headers'),
    proofFails: ({ event }) => event.type === 'authenticate' && event.proof !== 'valid',
    tierInsufficient: ({ context, event }) =>
      event.type === 'authenticate' &&
      event.requiredTier === 'privileged' &&
      context.tier !== 'privileged',
    lastUsable: ({ event }) => event.type === 'revoke' && event.otherUsableKeys === 0,
  },
});

const refuseProof = machine.emit(({ event }) => ({
  type: 'refused' as const,
  refusal: 'admin_auth_failed' as const,
  reason: event.type === 'authenticate' ? event.proof : '',
}));

/**
 * A revoked key is answered exactly as an unknown one [service-operator-authentication-5]; only the
 * audit log distinguishes them.
 */
function refuseKey(reason: 'unknown_key' | 'revoked_key') {
  return machine.emit({ type: 'refused' as const, refusal: 'unknown_admin_key' as const, reason });
}

export const operatorKeyMachine = machine.createMachine({
  id: 'operator-key',
  initial: 'absent',
  context: none,
  states: {
    absent: {
      on: {
        configure: { target: 'usable', actions: assign(({ event }) => ({ tier: event.tier })) },
        authenticate: [
          { guard: 'headersFail', actions: refuseProof },
          { actions: refuseKey('unknown_key') },
        ],
        revoke: { actions: emit({ type: 'refused', refusal: 'unknown_operator_key' }) },
      },
    },
    usable: {
      on: {
        authenticate: [
          { guard: 'proofFails', actions: refuseProof },
          {
            guard: 'tierInsufficient',
            actions: emit({ type: 'refused', refusal: 'insufficient_operator_tier' }),
          },
          { actions: emit({ type: 'authenticated' }) },
        ],
        revoke: [
          {
            guard: 'lastUsable',
            actions: emit({ type: 'refused', refusal: 'last_active_operator_key' }),
          },
          {
            target: 'revoked',
            actions: [
              assign(({ event }) => ({
                revokedAt: event.at,
                reason: event.reason,
                revokedBy: event.by,
              })),
              emit({ type: 'revoked' }),
            ],
          },
        ],
      },
    },
    revoked: {
      on: {
        authenticate: [
          { guard: 'headersFail', actions: refuseProof },
          { actions: refuseKey('revoked_key') },
        ],
        revoke: { actions: emit({ type: 'already_revoked' }) },
      },
    },
  },
});

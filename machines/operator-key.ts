/**
 * Operator key ([service-operator-authentication]; order of checks from [core-2-3] and [core-4-9]). Revocation is
 * terminal; the last usable key cannot be revoked. A key comes from the configuration or is added by an operator; the
 * configuration sets the tier of a configured key.
 */
import { assign, emit, setup } from 'xstate';
import type { Tier } from '../src/protocol/contract/claims.ts';
import type { Refused } from './refused.ts';

/** Instants are milliseconds since the epoch. */
export interface OperatorKey {
  readonly tier: Tier;
  readonly revokedAt: number | null;
  readonly reason: string | null;
  readonly revokedBy: string | null;
  /** Base64; absent if a restore knew only the id of the key. */
  readonly publicKey?: string;
  /** Present only if an operator added the key. */
  readonly addedAt?: number;
  /** The operator key that added this one. */
  readonly addedBy?: string;
}

type OperatorKeyEvent =
  | {
      readonly type: 'configure';
      readonly tier: Tier;
      /** Null if only the id of the key is known. */
      readonly publicKey: string | null;
    }
  | {
      readonly type: 'add';
      readonly at: number;
      readonly tier: Tier;
      readonly publicKey: string;
      readonly by: string;
      /** The id or the public key belongs, or belonged, to another operator key. */
      readonly isTaken: boolean;
    }
  | {
      readonly type: 'set_tier';
      readonly tier: Tier;
      readonly isConfigured: boolean;
      /** Usable privileged keys other than this one. */
      readonly otherPrivilegedKeys: number;
    }
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
      /** Keys of any tier, other than this one, that are not revoked. */
      readonly otherUsableKeys: number;
      /** Usable privileged keys other than this one. */
      readonly otherPrivilegedKeys: number;
      /** The operator asked for a refusal if this would leave no privileged key. */
      readonly unlessLastPrivileged: boolean;
    };

export type OperatorKeyRefusal =
  | 'unknown_admin_key'
  | 'admin_auth_failed'
  | 'insufficient_operator_tier'
  | 'unknown_operator_key'
  | 'last_active_operator_key'
  | 'last_privileged_operator_key'
  | 'operator_key_exists'
  | 'operator_key_configured'
  | 'operator_key_revoked';

const none: OperatorKey = { tier: 'standard', revokedAt: null, reason: null, revokedBy: null };

const machine = setup({
  types: {} as {
    context: OperatorKey;
    events: OperatorKeyEvent;
    emitted:
      | Refused<OperatorKeyRefusal>
      | {
          readonly type:
            | 'authenticated'
            | 'added'
            | 'tier_set'
            | 'tier_unchanged'
            | 'revoked'
            | 'already_revoked';
        };
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
    taken: ({ event }) => event.type === 'add' && event.isTaken,
    configured: ({ event }) => event.type === 'set_tier' && event.isConfigured,
    sameTier: ({ context, event }) => event.type === 'set_tier' && event.tier === context.tier,
    lastPrivileged: ({ context, event }) =>
      context.tier === 'privileged' &&
      (event.type === 'set_tier' || (event.type === 'revoke' && event.unlessLastPrivileged)) &&
      event.otherPrivilegedKeys === 0,
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

const refuseTaken = machine.emit({
  type: 'refused' as const,
  refusal: 'operator_key_exists' as const,
});
const refuseLastPrivileged = {
  guard: 'lastPrivileged' as const,
  actions: machine.emit({
    type: 'refused' as const,
    refusal: 'last_privileged_operator_key' as const,
  }),
};

export const operatorKeyMachine = machine.createMachine({
  id: 'operator-key',
  initial: 'absent',
  context: none,
  states: {
    absent: {
      on: {
        configure: {
          target: 'usable',
          actions: assign(({ event: { tier, publicKey } }) => ({
            tier,
            ...(publicKey !== null && { publicKey }),
          })),
        },
        add: [
          { guard: 'taken', actions: refuseTaken },
          {
            target: 'usable',
            actions: [
              assign(({ event: { tier, publicKey, at, by } }) => ({
                tier,
                publicKey,
                addedAt: at,
                addedBy: by,
              })),
              emit({ type: 'added' }),
            ],
          },
        ],
        set_tier: { actions: emit({ type: 'refused', refusal: 'unknown_operator_key' }) },
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
        add: { actions: refuseTaken },
        set_tier: [
          {
            guard: 'configured',
            actions: emit({ type: 'refused', refusal: 'operator_key_configured' }),
          },
          { guard: 'sameTier', actions: emit({ type: 'tier_unchanged' }) },
          refuseLastPrivileged,
          {
            actions: [assign(({ event }) => ({ tier: event.tier })), emit({ type: 'tier_set' })],
          },
        ],
        revoke: [
          {
            guard: 'lastUsable',
            actions: emit({ type: 'refused', refusal: 'last_active_operator_key' }),
          },
          refuseLastPrivileged,
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
        add: { actions: refuseTaken },
        set_tier: { actions: emit({ type: 'refused', refusal: 'operator_key_revoked' }) },
        revoke: { actions: emit({ type: 'already_revoked' }) },
      },
    },
  },
});

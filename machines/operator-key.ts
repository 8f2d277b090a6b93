/**
 * Operator key ([service-operator-authentication]; order of checks from [core-2-3] and [core-4-9]). Revocation is
 * terminal; the last usable key cannot be revoked. A key comes from the configuration or is added by an operator; the
 * configuration sets the tier of a configured key.
 */
import { assertEvent, assign, emit, setup } from 'xstate';
import type { Tier } from '../src/protocol/contract/claims.ts';
import { type Refused, refused } from './refused.ts';

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

export const operatorKeyMachine = setup({
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
    tags: 'terminal';
  },
  guards: {
    headersFail: ({ event }) => {
      assertEvent(event, 'authenticate');
      return event.proof === 'missing_headers' || event.proof === 'oversized_headers';
    },
    proofFails: ({ event }) => {
      assertEvent(event, 'authenticate');
      return event.proof !== 'valid';
    },
    tierInsufficient: ({ context, event }) => {
      assertEvent(event, 'authenticate');
      return event.requiredTier === 'privileged' && context.tier !== 'privileged';
    },
    taken: ({ event }) => {
      assertEvent(event, 'add');
      return event.isTaken;
    },
    configured: ({ event }) => {
      assertEvent(event, 'set_tier');
      return event.isConfigured;
    },
    sameTier: ({ context, event }) => {
      assertEvent(event, 'set_tier');
      return event.tier === context.tier;
    },
    lastPrivileged: ({ context, event }) => {
      assertEvent(event, ['set_tier', 'revoke']);
      const isAllowed = event.type === 'revoke' && !event.unlessLastPrivileged;
      return context.tier === 'privileged' && !isAllowed && event.otherPrivilegedKeys === 0;
    },
    lastUsable: ({ event }) => {
      assertEvent(event, 'revoke');
      return event.otherUsableKeys === 0;
    },
  },
  actions: {
    refuseProof: emit(({ event }) => {
      assertEvent(event, 'authenticate');
      return refused('admin_auth_failed', event.proof);
    }),
  },
}).createMachine({
  id: 'operator-key',
  initial: 'absent',
  context: none,
  on: { add: { actions: emit(refused('operator_key_exists')) } },
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
          { guard: 'taken', actions: emit(refused('operator_key_exists')) },
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
        set_tier: { actions: emit(refused('unknown_operator_key')) },
        authenticate: [
          { guard: 'headersFail', actions: 'refuseProof' },
          { actions: emit(refused('unknown_admin_key', 'unknown_key')) },
        ],
        revoke: { actions: emit(refused('unknown_operator_key')) },
      },
    },
    usable: {
      on: {
        authenticate: [
          { guard: 'proofFails', actions: 'refuseProof' },
          { guard: 'tierInsufficient', actions: emit(refused('insufficient_operator_tier')) },
          { actions: emit({ type: 'authenticated' }) },
        ],
        set_tier: [
          { guard: 'configured', actions: emit(refused('operator_key_configured')) },
          { guard: 'sameTier', actions: emit({ type: 'tier_unchanged' }) },
          { guard: 'lastPrivileged', actions: emit(refused('last_privileged_operator_key')) },
          { actions: [assign(({ event }) => ({ tier: event.tier })), emit({ type: 'tier_set' })] },
        ],
        revoke: [
          { guard: 'lastUsable', actions: emit(refused('last_active_operator_key')) },
          { guard: 'lastPrivileged', actions: emit(refused('last_privileged_operator_key')) },
          {
            target: 'revoked',
            actions: [
              assign(({ event: { at, reason, by } }) => ({ revokedAt: at, reason, revokedBy: by })),
              emit({ type: 'revoked' }),
            ],
          },
        ],
      },
    },
    revoked: {
      tags: 'terminal',
      on: {
        // Answered exactly as an unknown key [service-operator-authentication-5]; the audit log has the reason.
        authenticate: [
          { guard: 'headersFail', actions: 'refuseProof' },
          { actions: emit(refused('unknown_admin_key', 'revoked_key')) },
        ],
        set_tier: { actions: emit(refused('operator_key_revoked')) },
        revoke: { actions: emit({ type: 'already_revoked' }) },
      },
    },
  },
});

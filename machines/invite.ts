/**
 * Invite token: single use, bound to a lifetime and optionally to one node key; an operator may withdraw it
 * while it is unused [service-states-invite].
 */
import { assertEvent, assign, emit, setup } from 'xstate';
import { MAX_LIVE_CERTIFICATES } from './certificate.ts';
import { type Refused, refused } from './refused.ts';

/** Instants are milliseconds since the epoch. The token itself is not stored: the id is its hash. */
export interface Invite {
  readonly roles: readonly string[];
  readonly maxValidityHours: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The only node key that may use the invite, or null. */
  readonly recipient: string | null;
  /** The label by which the whole batch is listed and withdrawn; present only if the invite was created in a batch. */
  readonly batch?: string;
  /** What the node that joins will be called. */
  readonly name?: string;
  /** Each label of that node as `key=value`, sorted. */
  readonly labels?: readonly string[];
  readonly usedAt: number | null;
  readonly usedBy: string | null;
  /** Present only if the invite was withdrawn. */
  readonly withdrawnAt?: number;
  /** The operator key that withdrew the invite. */
  readonly withdrawnBy?: string;
}

type InviteEvent =
  | { readonly type: 'create'; readonly invite: Invite }
  | {
      readonly type: 'join';
      readonly at: number;
      readonly nodePublicKey: string;
      /** An earlier certificate of the key was revoked for key compromise. */
      readonly keyCompromised: boolean;
      /** The number of live certificates of the key. */
      readonly liveCertificates: number;
      /** `valid`, or why the proof of possession fails. */
      readonly proof: string;
    }
  | { readonly type: 'withdraw'; readonly at: number; readonly by: string };

export type InviteRefusal =
  | 'node_key_compromised'
  | 'invalid_invite_token'
  | 'node_auth_failed'
  | 'too_many_live_certificates'
  | 'invite_not_found'
  | 'invite_consumed';

const none: Invite = {
  roles: [],
  maxValidityHours: 0,
  createdAt: 0,
  expiresAt: 0,
  recipient: null,
  usedAt: null,
  usedBy: null,
};

export const inviteMachine = setup({
  types: {} as {
    context: Invite;
    events: InviteEvent;
    emitted:
      | Refused<InviteRefusal>
      | { readonly type: 'consumed' | 'withdrawn' | 'already_withdrawn' };
    tags: 'terminal';
  },
  guards: {
    keyCompromised: ({ event }) => {
      assertEvent(event, 'join');
      return event.keyCompromised;
    },
    expired: ({ context, event }) => {
      assertEvent(event, 'join');
      return context.expiresAt < event.at;
    },
    boundToAnotherKey: ({ context: { recipient }, event }) => {
      assertEvent(event, 'join');
      return recipient !== null && recipient !== event.nodePublicKey;
    },
    proofFails: ({ event }) => {
      assertEvent(event, 'join');
      return event.proof !== 'valid';
    },
    tooManyLive: ({ event }) => {
      assertEvent(event, 'join');
      return event.liveCertificates >= MAX_LIVE_CERTIFICATES;
    },
  },
}).createMachine({
  id: 'invite',
  initial: 'absent',
  context: none,
  on: {
    join: [
      { guard: 'keyCompromised', actions: emit(refused('node_key_compromised')) },
      { actions: emit(refused('invalid_invite_token')) },
    ],
  },
  states: {
    absent: {
      on: {
        create: { target: 'unused', actions: assign(({ event }) => event.invite) },
        withdraw: { actions: emit(refused('invite_not_found')) },
      },
    },
    unused: {
      on: {
        join: [
          { guard: 'keyCompromised', actions: emit(refused('node_key_compromised')) },
          { guard: 'expired', actions: emit(refused('invalid_invite_token')) },
          { guard: 'boundToAnotherKey', actions: emit(refused('invalid_invite_token')) },
          {
            guard: 'proofFails',
            actions: emit(({ event }) => refused('node_auth_failed', event.proof)),
          },
          { guard: 'tooManyLive', actions: emit(refused('too_many_live_certificates')) },
          {
            target: 'consumed',
            actions: [
              assign(({ event }) => ({ usedAt: event.at, usedBy: event.nodePublicKey })),
              emit({ type: 'consumed' }),
            ],
          },
        ],
        withdraw: {
          target: 'withdrawn',
          actions: [
            assign(({ event }) => ({ withdrawnAt: event.at, withdrawnBy: event.by })),
            emit({ type: 'withdrawn' }),
          ],
        },
      },
    },
    consumed: {
      tags: 'terminal',
      on: { withdraw: { actions: emit(refused('invite_consumed')) } },
    },
    withdrawn: {
      tags: 'terminal',
      on: { withdraw: { actions: emit({ type: 'already_withdrawn' }) } },
    },
  },
});

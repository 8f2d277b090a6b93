/**
 * Agent registration (spec, state table; order of refusals from wire rules 4.6). A registration ends by
 * removal, by eviction once its time has passed, or with the revocation of the node's certificate.
 */
import { emit, setup } from 'xstate';
import type { Refused } from './refused.ts';

/** Instants are milliseconds since the epoch. */
export interface AgentRegistration {
  /** The normalised descriptor as it is served. */
  readonly json: string;
  readonly capabilities: readonly string[];
  readonly registeredAt: number;
  readonly expiresAt: number;
}

export type AgentRegistrationEvent =
  | {
      readonly type: 'register';
      readonly registration: AgentRegistration;
      readonly hasActiveCertificate: boolean;
      readonly keyCompromised: boolean;
      readonly signatureValid: boolean;
    }
  | {
      readonly type: 'remove';
      /** The signature of the envelope, or the proof header, verifies under the node key. */
      readonly signatureValid: boolean;
      /** The very envelope was used before. */
      readonly replayed: boolean;
    }
  | { readonly type: 'evict'; readonly at: number }
  | { readonly type: 'certificate_revoked' };

export type AgentRegistrationRefusal =
  | 'node_has_no_active_certificate'
  | 'node_key_revoked'
  | 'invalid_agent_signature'
  | 'agent_not_registered';

const none: AgentRegistration = { json: '', capabilities: [], registeredAt: 0, expiresAt: 0 };

const machine = setup({
  types: {} as {
    context: AgentRegistration;
    events: AgentRegistrationEvent;
    emitted:
      | Refused<AgentRegistrationRefusal>
      | { readonly type: 'registered' | 'removed' | 'evicted' | 'current' };
  },
  guards: {
    noActiveCertificate: ({ event }) => event.type === 'register' && !event.hasActiveCertificate,
    keyCompromised: ({ event }) => event.type === 'register' && event.keyCompromised,
    signatureFails: ({ event }) => event.type === 'register' && !event.signatureValid,
    proofFails: ({ event }) => event.type === 'remove' && !event.signatureValid,
    replayed: ({ event }) => event.type === 'remove' && event.replayed,
    pastExpiry: ({ context, event }) => event.type === 'evict' && context.expiresAt <= event.at,
  },
});

function refuse(refusal: AgentRegistrationRefusal) {
  return machine.emit({ type: 'refused', refusal });
}

const register = [
  { guard: 'noActiveCertificate' as const, actions: refuse('node_has_no_active_certificate') },
  { guard: 'keyCompromised' as const, actions: refuse('node_key_revoked') },
  { guard: 'signatureFails' as const, actions: refuse('invalid_agent_signature') },
  {
    target: 'registered',
    actions: [
      machine.assign(({ event }) => (event.type === 'register' ? event.registration : {})),
      machine.emit({ type: 'registered' }),
    ],
  },
];

const refuseProof = { guard: 'proofFails' as const, actions: refuse('invalid_agent_signature') };

/** A registration that has ended leaves only its key behind. */
const forget = machine.assign(() => none);

const gone = {
  on: { register, remove: [refuseProof, { actions: refuse('agent_not_registered') }] },
};

export const agentRegistrationMachine = machine.createMachine({
  id: 'agent-registration',
  initial: 'absent',
  context: none,
  states: {
    absent: gone,
    registered: {
      on: {
        register,
        remove: [
          refuseProof,
          { guard: 'replayed', actions: refuse('invalid_agent_signature') },
          { target: 'removed', actions: [forget, emit({ type: 'removed' })] },
        ],
        evict: [
          { guard: 'pastExpiry', target: 'evicted', actions: [forget, emit({ type: 'evicted' })] },
          { actions: emit({ type: 'current' }) },
        ],
        certificate_revoked: { target: 'evicted', actions: [forget, emit({ type: 'evicted' })] },
      },
    },
    removed: gone,
    evicted: gone,
  },
});

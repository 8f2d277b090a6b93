/**
 * Agent registration ([service-states-agent-registration]; order of refusals from [core-4-6]). A
 * registration ends by removal, by eviction once its time has passed, or with the revocation of the node's
 * certificate.
 *
 * Descriptors are public, so anyone can replay one. A descriptor is refused if it is older than the last accepted one
 * or than the event that ended the registration. Clients that write whole seconds can produce several descriptors for
 * the same instant; those are refused only if their content was superseded at that instant. An ended registration keeps
 * the data these checks need.
 */
import { assertEvent, assign, emit, setup } from 'xstate';
import { type Refused, refused } from './refused.ts';

/**
 * How many superseded contents are remembered per instant; beyond this limit, a descriptor with an equal instant is
 * refused.
 */
const MAX_SUPERSEDED = 64;

/** Instants are milliseconds since the epoch. */
export interface AgentRegistration {
  /** The normalized descriptor, as served. */
  readonly json: string;
  /** Digest of the signed text: changing only the list of signatures does not make a different descriptor. */
  readonly content: string;
  /** Contents registered earlier at the same instant, or current when the registration ended. */
  readonly superseded: readonly string[];
  readonly capabilities: readonly string[];
  /** Descriptors registered before this instant are refused. */
  readonly registeredAt: number;
  /** Set once the registration has ended: when the last descriptor that could be replayed expires. */
  readonly expiresAt: number;
  /** The latest expiry of all accepted descriptors. */
  readonly heldUntil: number;
}

type AgentRegistrationEvent =
  | {
      readonly type: 'register';
      readonly registration: Omit<AgentRegistration, 'heldUntil' | 'superseded'>;
      readonly hasActiveCertificate: boolean;
      readonly keyCompromised: boolean;
      readonly signatureValid: boolean;
    }
  | {
      readonly type: 'remove';
      readonly signedAt: number;
      /** The signature of the envelope, or the proof header, verifies under the node key. */
      readonly signatureValid: boolean;
      /** The same envelope was used before. */
      readonly replayed: boolean;
    }
  | { readonly type: 'evict'; readonly at: number }
  | { readonly type: 'certificate_revoked'; readonly at: number };

type AgentRegistrationRefusal =
  | 'node_key_revoked'
  | 'node_has_no_active_certificate'
  | 'invalid_agent_signature'
  | 'descriptor_superseded'
  | 'agent_not_registered';

const none: AgentRegistration = {
  json: '',
  content: '',
  superseded: [],
  capabilities: [],
  registeredAt: 0,
  expiresAt: 0,
  heldUntil: 0,
};

export const agentRegistrationMachine = setup({
  types: {} as {
    context: AgentRegistration;
    events: AgentRegistrationEvent;
    emitted:
      | Refused<AgentRegistrationRefusal>
      | { readonly type: 'registered' | 'unchanged' | 'removed' | 'evicted' | 'current' };
  },
  guards: {
    noActiveCertificate: ({ event }) => {
      assertEvent(event, 'register');
      return !event.hasActiveCertificate;
    },
    keyCompromised: ({ event }) => {
      assertEvent(event, 'register');
      return event.keyCompromised;
    },
    signatureFails: ({ event }) => {
      assertEvent(event, ['register', 'remove']);
      return !event.signatureValid;
    },
    repeated: ({ context, event }) => {
      assertEvent(event, 'register');
      return event.registration.content === context.content;
    },
    superseded: ({ context, event }) => {
      assertEvent(event, 'register');
      const { registeredAt, content } = event.registration;
      if (registeredAt !== context.registeredAt) return registeredAt < context.registeredAt;
      const { superseded } = context;
      return superseded.length >= MAX_SUPERSEDED || superseded.includes(content);
    },
    replayed: ({ event }) => {
      assertEvent(event, 'remove');
      return event.replayed;
    },
    pastExpiry: ({ context, event }) => {
      assertEvent(event, 'evict');
      return context.expiresAt <= event.at;
    },
  },
  actions: {
    register: assign(({ context, event }) => {
      assertEvent(event, 'register');
      const { registration } = event;
      return {
        ...registration,
        superseded: supersededAt(registration.registeredAt, context),
        heldUntil: Math.max(context.heldUntil, registration.expiresAt),
      };
    }),
  },
}).createMachine({
  id: 'agent-registration',
  initial: 'absent',
  context: none,
  on: {
    register: [
      { guard: 'keyCompromised', actions: emit(refused('node_key_revoked')) },
      { guard: 'noActiveCertificate', actions: emit(refused('node_has_no_active_certificate')) },
      { guard: 'signatureFails', actions: emit(refused('invalid_agent_signature')) },
      { guard: 'superseded', actions: emit(refused('descriptor_superseded')) },
      { target: '.registered', actions: ['register', emit({ type: 'registered' })] },
    ],
    remove: [
      { guard: 'signatureFails', actions: emit(refused('invalid_agent_signature')) },
      { actions: emit(refused('agent_not_registered')) },
    ],
  },
  states: {
    absent: {},
    registered: {
      on: {
        register: [
          { guard: 'keyCompromised', actions: emit(refused('node_key_revoked')) },
          {
            guard: 'noActiveCertificate',
            actions: emit(refused('node_has_no_active_certificate')),
          },
          { guard: 'signatureFails', actions: emit(refused('invalid_agent_signature')) },
          { guard: 'repeated', actions: emit({ type: 'unchanged' }) },
          { guard: 'superseded', actions: emit(refused('descriptor_superseded')) },
          { actions: ['register', emit({ type: 'registered' })] },
        ],
        remove: [
          { guard: 'signatureFails', actions: emit(refused('invalid_agent_signature')) },
          { guard: 'replayed', actions: emit(refused('invalid_agent_signature')) },
          {
            target: 'removed',
            actions: [
              assign(({ context, event }) => endedAt(event.signedAt, context)),
              emit({ type: 'removed' }),
            ],
          },
        ],
        evict: [
          {
            guard: 'pastExpiry',
            target: 'evicted',
            actions: [assign(({ context }) => endedAt(0, context)), emit({ type: 'evicted' })],
          },
          { actions: emit({ type: 'current' }) },
        ],
        certificate_revoked: {
          target: 'evicted',
          actions: [
            assign(({ context, event }) => endedAt(event.at, context)),
            emit({ type: 'evicted' }),
          ],
        },
      },
    },
    removed: {},
    evicted: {},
  },
});

/** Contents that must not be registered again at this instant: the one registered then, and those it superseded. */
function supersededAt(instant: number, context: AgentRegistration): readonly string[] {
  const { registeredAt, content, superseded } = context;
  if (instant !== registeredAt) return [];
  return content === '' ? superseded : [...superseded, content];
}

/** An ended registration keeps its key and the data needed to refuse its descriptors. */
function endedAt(instant: number, context: AgentRegistration): AgentRegistration {
  const registeredAt = Math.max(context.registeredAt, instant);
  return {
    ...none,
    registeredAt,
    superseded: supersededAt(registeredAt, context),
    expiresAt: context.heldUntil,
    heldUntil: context.heldUntil,
  };
}

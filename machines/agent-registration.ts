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
import { emit, setup } from 'xstate';
import type { Refused } from './refused.ts';

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

const machine = setup({
  types: {} as {
    context: AgentRegistration;
    events: AgentRegistrationEvent;
    emitted:
      | Refused<AgentRegistrationRefusal>
      | { readonly type: 'registered' | 'unchanged' | 'removed' | 'evicted' | 'current' };
  },
  guards: {
    noActiveCertificate: ({ event }) => event.type === 'register' && !event.hasActiveCertificate,
    keyCompromised: ({ event }) => event.type === 'register' && event.keyCompromised,
    signatureFails: ({ event }) => event.type === 'register' && !event.signatureValid,
    repeated: ({ context, event }) =>
      event.type === 'register' && event.registration.content === context.content,
    superseded: ({ context, event }) =>
      event.type === 'register' && isSuperseded(event.registration, context),
    proofFails: ({ event }) => event.type === 'remove' && !event.signatureValid,
    replayed: ({ event }) => event.type === 'remove' && event.replayed,
    pastExpiry: ({ context, event }) => event.type === 'evict' && context.expiresAt <= event.at,
  },
});

function refuse(refusal: AgentRegistrationRefusal) {
  return machine.emit({ type: 'refused', refusal });
}

const registerChecks = [
  { guard: 'keyCompromised' as const, actions: refuse('node_key_revoked') },
  { guard: 'noActiveCertificate' as const, actions: refuse('node_has_no_active_certificate') },
  { guard: 'signatureFails' as const, actions: refuse('invalid_agent_signature') },
];

const accept = {
  target: 'registered',
  actions: [
    machine.assign(({ context, event }) =>
      event.type === 'register'
        ? {
            ...event.registration,
            superseded: supersededAt(event.registration.registeredAt, context),
            heldUntil: Math.max(context.heldUntil, event.registration.expiresAt),
          }
        : {},
    ),
    machine.emit({ type: 'registered' }),
  ],
};

const refuseSuperseded = {
  guard: 'superseded' as const,
  actions: refuse('descriptor_superseded'),
};

const refuseProof = { guard: 'proofFails' as const, actions: refuse('invalid_agent_signature') };

function isSuperseded(
  { registeredAt, content }: Pick<AgentRegistration, 'registeredAt' | 'content'>,
  context: AgentRegistration,
): boolean {
  if (registeredAt !== context.registeredAt) return registeredAt < context.registeredAt;
  const { superseded } = context;
  return superseded.length >= MAX_SUPERSEDED || superseded.includes(content);
}

/** Contents that must not be registered again at this instant: the one registered then, and those it superseded. */
function supersededAt(instant: number, context: AgentRegistration): readonly string[] {
  const { registeredAt, content, superseded } = context;
  if (instant !== registeredAt) return [];
  return content === '' ? superseded : [...superseded, content];
}

/** An ended registration keeps its key and the data needed to refuse its descriptors. */
const end = machine.assign(({ context, event }) => {
  const endedAt =
    event.type === 'remove' ? event.signedAt : event.type === 'certificate_revoked' ? event.at : 0;
  const registeredAt = Math.max(context.registeredAt, endedAt);
  return {
    ...none,
    registeredAt,
    superseded: supersededAt(registeredAt, context),
    expiresAt: context.heldUntil,
    heldUntil: context.heldUntil,
  };
});

const remove = [refuseProof, { actions: refuse('agent_not_registered') }];
const gone = { on: { register: [...registerChecks, refuseSuperseded, accept], remove } };

export const agentRegistrationMachine = machine.createMachine({
  id: 'agent-registration',
  initial: 'absent',
  context: none,
  states: {
    absent: { on: { register: [...registerChecks, accept], remove } },
    registered: {
      on: {
        register: [
          ...registerChecks,
          { guard: 'repeated', actions: emit({ type: 'unchanged' }) },
          refuseSuperseded,
          accept,
        ],
        remove: [
          refuseProof,
          { guard: 'replayed', actions: refuse('invalid_agent_signature') },
          { target: 'removed', actions: [end, emit({ type: 'removed' })] },
        ],
        evict: [
          { guard: 'pastExpiry', target: 'evicted', actions: [end, emit({ type: 'evicted' })] },
          { actions: emit({ type: 'current' }) },
        ],
        certificate_revoked: { target: 'evicted', actions: [end, emit({ type: 'evicted' })] },
      },
    },
    removed: gone,
    evicted: gone,
  },
});

import {
  type AgentRegistration,
  agentRegistrationMachine,
} from '../../machines/agent-registration.ts';
import { HOUR, NOW, type Row, testTable, testUnhandled } from '../support/state-tables.ts';

const DAY = 24 * HOUR;

// Agent registration [service-states-agent-registration], [core-4-6]

const registration: AgentRegistration = {
  json: '{"agent_id":"a-1"}',
  content: 'digest-1',
  superseded: ['digest-0'],
  capabilities: ['llm:chat'],
  registeredAt: NOW - HOUR,
  expiresAt: NOW,
  heldUntil: NOW + DAY,
};
const registered = { value: 'registered', context: registration };
/** What remains after it ends: older descriptors are refused as long as an accepted one is valid. */
const leftOver = {
  json: '',
  content: '',
  superseded: ['digest-0', 'digest-1'],
  capabilities: [],
  registeredAt: registration.registeredAt,
  expiresAt: NOW + DAY,
  heldUntil: NOW + DAY,
};
const removed = { value: 'removed', context: leftOver };
const evicted = { value: 'evicted', context: leftOver };
const { heldUntil: _, superseded: __, ...instanceStatus } = registration;
const refreshed = {
  ...instanceStatus,
  json: '{"agent_id":"a-2"}',
  content: 'digest-2',
  registeredAt: NOW - HOUR + 1,
  expiresAt: NOW + HOUR,
};
const register = {
  type: 'register',
  registration: refreshed,
  hasActiveCertificate: true,
  keyCompromised: false,
  signatureValid: true,
} as const;
const removeAgent = {
  type: 'remove',
  signedAt: NOW - HOUR,
  signatureValid: true,
  replayed: false,
} as const;
const isGone = (value: string, registeredAt = registration.registeredAt) => ({
  value,
  facts: {
    ...leftOver,
    registeredAt,
    superseded: registeredAt === registration.registeredAt ? leftOver.superseded : [],
  },
});

testTable(agentRegistrationMachine, [
  ...[undefined, registered, removed, evicted].flatMap((from): Row[] => {
    const when = from?.value ?? 'absent';
    const row = { ...(from && { from }) };
    return [
      {
        name: `${when}, a node with an active certificate registers`,
        ...row,
        event: register,
        emits: ['registered'],
        to: {
          value: 'registered',
          facts: {
            ...refreshed,
            superseded: [],
            heldUntil: from === undefined ? NOW + HOUR : NOW + DAY,
          },
        },
      },
      {
        name: `${when}, a compromised key is refused before anything else`,
        ...row,
        event: {
          ...register,
          hasActiveCertificate: false,
          keyCompromised: true,
          signatureValid: false,
        },
        emits: ['node_key_revoked'],
      },
      {
        name: `${when}, a node without active certificate is refused before its signature`,
        ...row,
        event: { ...register, hasActiveCertificate: false, signatureValid: false },
        emits: ['node_has_no_active_certificate'],
      },
      {
        name: `${when}, a descriptor that does not verify is refused`,
        ...row,
        event: { ...register, signatureValid: false },
        emits: ['invalid_agent_signature'],
      },
      {
        name: `${when}, a removal that does not verify is refused before all else`,
        ...row,
        event: { ...removeAgent, signatureValid: false, replayed: true },
        emits: ['invalid_agent_signature'],
      },
    ];
  }),
  ...[undefined, removed, evicted].flatMap((from): Row[] => [
    {
      name: `${from?.value ?? 'absent'}, it cannot be removed`,
      ...(from && { from }),
      event: removeAgent,
      emits: ['agent_not_registered'],
    },
    {
      name: `${from?.value ?? 'absent'}, that is reported before the used envelope`,
      ...(from && { from }),
      event: { ...removeAgent, replayed: true },
      emits: ['agent_not_registered'],
    },
  ]),
  ...[registered, removed, evicted].flatMap((from): Row[] => [
    {
      name: `${from.value}, an older descriptor is refused`,
      from,
      event: { ...register, registration: { ...refreshed, registeredAt: NOW - HOUR - 1 } },
      emits: ['descriptor_superseded'],
    },
    {
      name: `${from.value}, another descriptor of the same instant is accepted`,
      from,
      event: { ...register, registration: { ...refreshed, registeredAt: NOW - HOUR } },
      emits: ['registered'],
      to: {
        value: 'registered',
        facts: { ...refreshed, registeredAt: NOW - HOUR, superseded: leftOver.superseded },
      },
    },
    {
      name: `${from.value}, a descriptor that was superseded at the same instant is refused`,
      from,
      event: { ...register, registration: { ...instanceStatus, content: 'digest-0' } },
      emits: ['descriptor_superseded'],
    },
    {
      name: `${from.value}, another one is refused once 64 were superseded at the same instant`,
      from: {
        ...from,
        context: { ...from.context, superseded: Array.from({ length: 64 }, (_, n) => `old-${n}`) },
      },
      event: { ...register, registration: { ...refreshed, registeredAt: NOW - HOUR } },
      emits: ['descriptor_superseded'],
    },
  ]),
  ...[removed, evicted].map(
    (from): Row => ({
      name: `${from.value}, the descriptor that ended then is refused`,
      from,
      event: { ...register, registration: instanceStatus },
      emits: ['descriptor_superseded'],
    }),
  ),
  {
    name: 'an older descriptor is refused after its signature',
    from: registered,
    event: {
      ...register,
      registration: { ...refreshed, registeredAt: NOW - HOUR - 1 },
      signatureValid: false,
    },
    emits: ['invalid_agent_signature'],
  },
  {
    name: 'the registered descriptor with other signatures changes nothing',
    from: registered,
    event: { ...register, registration: { ...instanceStatus, json: '{"signatures":[]}' } },
    emits: ['unchanged'],
  },
  {
    name: 'the registered descriptor, sent again, changes nothing',
    from: registered,
    event: { ...register, registration: instanceStatus },
    emits: ['unchanged'],
  },
  {
    name: 'removed by its node, it keeps what is needed to refuse its descriptors',
    from: registered,
    event: removeAgent,
    emits: ['removed'],
    to: isGone('removed'),
  },
  {
    name: 'removed later, it leaves the instant of the removal',
    from: registered,
    event: { ...removeAgent, signedAt: NOW },
    emits: ['removed'],
    to: isGone('removed', NOW),
  },
  {
    name: 'an envelope that was used before does not remove a later registration',
    from: registered,
    event: { ...removeAgent, replayed: true },
    emits: ['invalid_agent_signature'],
  },
  {
    name: 'at the instant of its expiry it is evicted',
    from: registered,
    event: { type: 'evict', at: registration.expiresAt },
    emits: ['evicted'],
    to: isGone('evicted'),
  },
  {
    name: 'until then it stays',
    from: registered,
    event: { type: 'evict', at: registration.expiresAt - 1 },
    emits: ['current'],
  },
  {
    name: 'it ends with the revocation of the certificate',
    from: registered,
    event: { type: 'certificate_revoked', at: NOW },
    emits: ['evicted'],
    to: isGone('evicted', NOW),
  },
]);

testUnhandled(
  agentRegistrationMachine,
  [undefined, removed, evicted].map((from) => [
    `evicting one that is ${from?.value ?? 'absent'}`,
    from,
    { type: 'evict', at: NOW },
  ]),
);

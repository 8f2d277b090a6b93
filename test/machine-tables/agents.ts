import {
  type AgentRegistration,
  agentRegistrationMachine,
} from '../../machines/agent-registration.ts';
import { absent, HOUR, inEach, NOW, testTable, testUnhandled } from '../support/state-tables.ts';

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
/** The same with 64 that were superseded at the same instant. */
const crowded = [registered, removed, evicted].map(({ value, context }) => ({
  value,
  context: { ...context, superseded: Array.from({ length: 64 }, (_, n) => `old-${n}`) },
}));

const { heldUntil: _, superseded: __, ...sent } = registration;
const newer = {
  ...sent,
  json: '{"agent_id":"a-2"}',
  content: 'digest-2',
  registeredAt: NOW - HOUR + 1,
  expiresAt: NOW + HOUR,
};
const register = {
  type: 'register',
  registration: newer,
  hasActiveCertificate: true,
  keyCompromised: false,
  signatureValid: true,
} as const;
const sameInstant = { ...register, registration: { ...newer, registeredAt: NOW - HOUR } };
const older = { ...register, registration: { ...newer, registeredAt: NOW - HOUR - 1 } };
const forgedOlder = { ...older, signatureValid: false };
const again = { ...register, registration: sent };
const wasSuperseded = { ...register, registration: { ...sent, content: 'digest-0' } };
const signedAnew = { ...register, registration: { ...sent, json: '{"signatures":[]}' } };
const inactive = { ...register, hasActiveCertificate: false, signatureValid: false };
const remove = { type: 'remove', signedAt: NOW - HOUR, signatureValid: true, replayed: false };
const forged = { ...remove, signatureValid: false, replayed: true };
const removeLater = { ...remove, signedAt: NOW };
const replayed = { ...remove, replayed: true };
const evict = { type: 'evict', at: NOW };
const revoked = { type: 'certificate_revoked', at: NOW };

const taken = (heldUntil: number) => ({ registered: { ...newer, superseded: [], heldUntil } });
const alongside = { registered: { ...sameInstant.registration, superseded: leftOver.superseded } };
const lateLeftOver = { ...leftOver, registeredAt: NOW, superseded: [] };
const leftLate = { removed: lateLeftOver };

testTable(agentRegistrationMachine, [
  ['a node with a certificate registers', absent, register, 'registered', taken(NOW + HOUR)],
  ...inEach(
    [registered, removed, evicted],
    ['a newer one is accepted', register, 'registered', taken(NOW + DAY)],
  ),
  ...inEach(
    [absent, registered, removed, evicted],
    ['a compromised key comes first', { ...inactive, keyCompromised: true }, 'node_key_revoked'],
    ['no certificate comes before the signature', inactive, 'node_has_no_active_certificate'],
    ['it must verify', { ...register, signatureValid: false }, 'invalid_agent_signature'],
    ['a forged removal is refused before all else', forged, 'invalid_agent_signature'],
  ),
  ...inEach(
    [absent, removed, evicted],
    ['it cannot be removed', remove, 'agent_not_registered'],
    ['that is reported before the used envelope', replayed, 'agent_not_registered'],
  ),
  ...inEach(
    [registered, removed, evicted],
    ['an older descriptor is refused', older, 'descriptor_superseded'],
    ['another one of the same instant is accepted', sameInstant, 'registered', alongside],
    ['one superseded at the same instant is refused', wasSuperseded, 'descriptor_superseded'],
  ),
  ...inEach(crowded, ['none after 64 of an instant', sameInstant, 'descriptor_superseded']),
  ...inEach([removed, evicted], ['what ended then is refused', again, 'descriptor_superseded']),
  ['but after its signature', registered, forgedOlder, 'invalid_agent_signature'],
  ['the registered descriptor with other signatures', registered, signedAnew, 'unchanged'],
  ['the registered descriptor, sent again', registered, again, 'unchanged'],
  ['removed, its refusals stay', registered, remove, 'removed', { removed: leftOver }],
  ['removed later, that instant stays', registered, removeLater, 'removed', leftLate],
  ['a used envelope removes nothing', registered, replayed, 'invalid_agent_signature'],
  ['evicted at the instant of its expiry', registered, evict, 'evicted', { evicted: leftOver }],
  ['until then it stays', registered, { ...evict, at: NOW - 1 }, 'current'],
  ['it ends with its certificate', registered, revoked, 'evicted', { evicted: lateLeftOver }],
]);

testUnhandled(agentRegistrationMachine, [
  ['evicting one that is absent', absent, evict],
  ['evicting one that is removed', removed, evict],
  ['evicting one that is evicted', evicted, evict],
]);

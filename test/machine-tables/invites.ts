import { MAX_LIVE_CERTIFICATES } from '../../machines/certificate.ts';
import { type Invite, inviteMachine } from '../../machines/invite.ts';
import { HOUR, NOW, testTable, testUnhandled } from '../support/state-tables.ts';

// Invite [service-states-invite], [core-4-3]

export const invite: Invite = {
  roles: ['role:client'],
  maxValidityHours: 72,
  createdAt: NOW - HOUR,
  expiresAt: NOW,
  recipient: null,
  usedAt: null,
  usedBy: null,
};
export const unused = { value: 'unused', context: invite };
export const bound = { value: 'unused', context: { ...invite, recipient: 'key-1' } };
export const consumed = {
  value: 'consumed',
  context: { ...invite, usedAt: NOW - 1, usedBy: 'key-0' },
};
const withdrawn = {
  value: 'withdrawn',
  context: { ...invite, withdrawnAt: NOW - 1, withdrawnBy: 'ops-1' },
};
const takeBack = { type: 'withdraw', at: NOW, by: 'ops-2' } as const;
export const join = {
  type: 'join',
  at: NOW,
  nodePublicKey: 'key-1',
  keyCompromised: false,
  liveCertificates: MAX_LIVE_CERTIFICATES - 1,
  proof: 'valid',
} as const;
const used = { value: 'consumed', facts: { usedAt: NOW, usedBy: 'key-1' } };

testTable(inviteMachine, [
  {
    name: 'created, it is unused',
    event: { type: 'create', invite },
    emits: [],
    to: { value: 'unused', facts: invite },
  },
  {
    name: 'a join with a valid proof consumes it',
    from: unused,
    event: join,
    emits: ['consumed'],
    to: used,
  },
  {
    name: 'at the very instant of its expiry it can still be used',
    from: unused,
    event: { ...join, at: invite.expiresAt },
    emits: ['consumed'],
    to: used,
  },
  {
    name: 'after its expiry it is refused',
    from: unused,
    event: { ...join, at: invite.expiresAt + 1 },
    emits: ['invalid_invite_token'],
  },
  {
    name: 'bound to a key, that key can use it',
    from: bound,
    event: join,
    emits: ['consumed'],
    to: used,
  },
  {
    name: 'bound to a key, another key is refused',
    from: bound,
    event: { ...join, nodePublicKey: 'key-2' },
    emits: ['invalid_invite_token'],
  },
  {
    name: 'a failing proof is refused with its reason and leaves the token usable',
    from: unused,
    event: { ...join, proof: 'stale_timestamp' },
    emits: [{ refusal: 'node_auth_failed', reason: 'stale_timestamp' }],
  },
  {
    name: 'a key with the maximum number of live certificates leaves the token usable',
    from: unused,
    event: { ...join, liveCertificates: MAX_LIVE_CERTIFICATES },
    emits: ['too_many_live_certificates'],
  },
  {
    name: 'a failing proof is reported before the number of certificates',
    from: unused,
    event: { ...join, liveCertificates: MAX_LIVE_CERTIFICATES, proof: 'nonce_replay' },
    emits: [{ refusal: 'node_auth_failed', reason: 'nonce_replay' }],
  },
  { name: 'consumed, it is refused', from: consumed, event: join, emits: ['invalid_invite_token'] },
  { name: 'one that does not exist is refused', event: join, emits: ['invalid_invite_token'] },
  {
    name: 'unused, it can be withdrawn',
    from: unused,
    event: takeBack,
    emits: ['withdrawn'],
    to: { value: 'withdrawn', facts: { withdrawnAt: NOW, withdrawnBy: 'ops-2' } },
  },
  {
    name: 'expired, it can be withdrawn',
    from: unused,
    event: { ...takeBack, at: NOW + HOUR },
    emits: ['withdrawn'],
    to: { value: 'withdrawn', facts: { withdrawnAt: NOW + HOUR, withdrawnBy: 'ops-2' } },
  },
  {
    name: 'made in a batch, it can be withdrawn, and stays in the batch',
    from: { value: 'unused', context: { ...invite, batch: 'team' } },
    event: takeBack,
    emits: ['withdrawn'],
    to: { value: 'withdrawn', facts: { batch: 'team', withdrawnAt: NOW, withdrawnBy: 'ops-2' } },
  },
  {
    name: 'withdrawn again, it stays as it was',
    from: withdrawn,
    event: takeBack,
    emits: ['already_withdrawn'],
  },
  {
    name: 'consumed, it cannot be withdrawn',
    from: consumed,
    event: takeBack,
    emits: ['invite_consumed'],
  },
  {
    name: 'one that does not exist cannot be withdrawn',
    event: takeBack,
    emits: ['invite_not_found'],
  },
  {
    name: 'withdrawn, it is refused, whatever the proof is',
    from: withdrawn,
    event: { ...join, proof: 'invalid_signature' },
    emits: ['invalid_invite_token'],
  },
  {
    name: 'a compromised key is refused before the withdrawn token',
    from: withdrawn,
    event: { ...join, keyCompromised: true },
    emits: ['node_key_compromised'],
  },
  {
    name: 'a compromised key is refused before anything is said of the token',
    event: { ...join, keyCompromised: true },
    emits: ['node_key_compromised'],
  },
  {
    name: 'a compromised key is refused before the consumed token',
    from: consumed,
    event: { ...join, keyCompromised: true, proof: 'missing_fields' },
    emits: ['node_key_compromised'],
  },
  {
    name: 'a compromised key is refused before expiry, binding and proof',
    from: bound,
    event: { ...join, at: NOW + HOUR, nodePublicKey: 'key-2', keyCompromised: true, proof: 'x' },
    emits: ['node_key_compromised'],
  },
  {
    name: 'expiry is refused before the proof is checked',
    from: unused,
    event: { ...join, at: NOW + HOUR, proof: 'invalid_signature' },
    emits: ['invalid_invite_token'],
  },
  {
    name: 'another key is refused before its proof is checked',
    from: bound,
    event: { ...join, nodePublicKey: 'key-2', proof: 'invalid_signature' },
    emits: ['invalid_invite_token'],
  },
  {
    name: 'a consumed token is refused before the proof is checked',
    from: consumed,
    event: { ...join, proof: 'invalid_signature' },
    emits: ['invalid_invite_token'],
  },
]);

testUnhandled(inviteMachine, [
  ['creating an invite that is unused', unused, { type: 'create', invite }],
  ['creating an invite that is consumed', consumed, { type: 'create', invite }],
  ['creating an invite that is withdrawn', withdrawn, { type: 'create', invite }],
  ['an event of another machine', unused, { type: 'revoke' }],
]);

import { MAX_LIVE_CERTIFICATES } from '../../machines/certificate.ts';
import { type Invite, inviteMachine } from '../../machines/invite.ts';
import { absent, HOUR, NOW, testTable, testUnhandled } from '../support/state-tables.ts';

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
const takeBackLate = { ...takeBack, at: NOW + HOUR };
export const join = {
  type: 'join',
  at: NOW,
  nodePublicKey: 'key-1',
  keyCompromised: false,
  liveCertificates: MAX_LIVE_CERTIFICATES - 1,
  proof: 'valid',
} as const;
const full = { ...join, liveCertificates: MAX_LIVE_CERTIFICATES };
const late = { ...join, at: NOW + HOUR };
const compromised = { ...join, keyCompromised: true };
const forged = { ...join, proof: 'invalid_signature' };
const stale = { ...join, proof: 'stale_timestamp' };
const fullReplay = { ...full, proof: 'nonce_replay' };
const badCompromised = { ...compromised, proof: 'missing_fields' };
const allWrong = { ...compromised, at: late.at, nodePublicKey: 'key-2', proof: 'x' };
const elsewhere = { ...join, nodePublicKey: 'key-2' };
const forgedElsewhere = { ...forged, nodePublicKey: 'key-2' };
const create = { type: 'create', invite } as const;
const used = { consumed: { usedAt: NOW, usedBy: 'key-1' } };
const takenBack = (at: number) => ({ withdrawn: { withdrawnAt: at, withdrawnBy: 'ops-2' } });
const inBatch = { value: 'unused', context: { ...invite, batch: 'team' } };

testTable(inviteMachine, [
  ['created, it is unused', absent, create, '', { unused: invite }],
  ['a join with a valid proof consumes it', unused, join, 'consumed', used],
  ['usable up to its expiry', unused, { ...join, at: invite.expiresAt }, 'consumed', used],
  ['not after it', unused, { ...join, at: invite.expiresAt + 1 }, 'invalid_invite_token'],
  ['bound to a key, that key can use it', bound, join, 'consumed', used],
  ['bound to a key, another key is refused', bound, elsewhere, 'invalid_invite_token'],
  ['a failing proof leaves the token', unused, stale, 'node_auth_failed: stale_timestamp'],
  ['too many live certificates leave the token', unused, full, 'too_many_live_certificates'],
  ['that comes before the certificates', unused, fullReplay, 'node_auth_failed: nonce_replay'],
  ['consumed, it is refused', consumed, join, 'invalid_invite_token'],
  ['one that does not exist is refused', absent, join, 'invalid_invite_token'],
  ['unused, it can be withdrawn', unused, takeBack, 'withdrawn', takenBack(NOW)],
  ['expired, it can be withdrawn', unused, takeBackLate, 'withdrawn', takenBack(NOW + HOUR)],
  ['withdrawn, it stays in its batch', inBatch, takeBack, 'withdrawn', takenBack(NOW)],
  ['withdrawn again, it stays as it was', withdrawn, takeBack, 'already_withdrawn'],
  ['consumed, it cannot be withdrawn', consumed, takeBack, 'invite_consumed'],
  ['one that does not exist cannot be withdrawn', absent, takeBack, 'invite_not_found'],
  ['withdrawn, it is refused, whatever the proof is', withdrawn, forged, 'invalid_invite_token'],
  ['a compromised key comes before withdrawal', withdrawn, compromised, 'node_key_compromised'],
  ['a compromised key comes before an unknown token', absent, compromised, 'node_key_compromised'],
  ['also before a consumed one', consumed, badCompromised, 'node_key_compromised'],
  ['also before expiry, binding and proof', bound, allWrong, 'node_key_compromised'],
  ['expiry comes before the proof', unused, { ...forged, at: late.at }, 'invalid_invite_token'],
  ['another key comes before its proof', bound, forgedElsewhere, 'invalid_invite_token'],
  ['a consumed token comes before the proof', consumed, forged, 'invalid_invite_token'],
]);

testUnhandled(inviteMachine, [
  ['creating an invite that is unused', unused, create],
  ['creating an invite that is consumed', consumed, create],
  ['creating an invite that is withdrawn', withdrawn, create],
  ['an event of another machine', unused, { type: 'revoke' }],
]);

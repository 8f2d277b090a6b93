import { type OperatorKey, operatorKeyMachine } from '../../machines/operator-key.ts';
import { absent, inEach, NOW, testTable, testUnhandled } from '../support/state-tables.ts';

// Operator key [service-operator-authentication], [core-2-3], [core-4-9]

const key: OperatorKey = {
  tier: 'standard',
  revokedAt: null,
  reason: null,
  revokedBy: null,
};
const standard = { value: 'usable', context: key };
const privileged = { value: 'usable', context: { ...key, tier: 'privileged' } };
const switchedOff = {
  value: 'revoked',
  context: { tier: 'privileged', revokedAt: NOW - 1, reason: 'key_compromise', revokedBy: 'ops-1' },
};
const authenticate = { type: 'authenticate', proof: 'valid', requiredTier: 'standard' } as const;
const forPrivileged = { ...authenticate, requiredTier: 'privileged' } as const;
const switchOff = {
  type: 'revoke',
  at: NOW,
  reason: 'rotated',
  by: 'ops-1',
  otherUsableKeys: 1,
  otherPrivilegedKeys: 1,
  unlessLastPrivileged: false,
} as const;
const add = {
  type: 'add',
  at: NOW,
  tier: 'privileged',
  publicKey: 'key-1',
  by: 'ops-1',
  isTaken: false,
} as const;
const toTier = { type: 'set_tier', isConfigured: false, otherPrivilegedKeys: 1 };
const setTier = { ...toTier, tier: 'privileged' };
const isOff = { revokedAt: NOW, reason: 'rotated', revokedBy: 'ops-1' };
const demote = { ...toTier, tier: 'standard' };
const demoteLast = { ...demote, otherPrivilegedKeys: 0 };
const lastUsable = { ...switchOff, otherUsableKeys: 0 };
const lastPrivileged = { ...switchOff, otherPrivilegedKeys: 0 };
const guarded = { ...lastPrivileged, unlessLastPrivileged: true };
const lastOfAll = { ...guarded, otherUsableKeys: 0 };
const configure = { type: 'configure', tier: 'privileged' } as const;
const configured = { ...key, tier: 'privileged', publicKey: 'key-1' };
const isUsable = { usable: configured };
const isAdded = { usable: { ...configured, addedAt: NOW, addedBy: 'ops-1' } };
const isPrivileged = { usable: { tier: 'privileged' } };
const isStandard = { usable: { tier: 'standard' } };
const isOffItself = { revoked: { ...isOff, revokedBy: 'this very key' } };
const setLastTier = { ...setTier, otherPrivilegedKeys: 0 };
const setConfigured = { ...setTier, isConfigured: true };
const switchItselfOff = { ...switchOff, by: 'this very key' };
const badTime = { ...forPrivileged, proof: 'invalid_timestamp' };
const replayed = { ...authenticate, proof: 'nonce_replay' };
const FAILING = ['invalid_timestamp', 'stale_timestamp', 'nonce_replay', 'invalid_signature'];
const gone = [absent, switchedOff];
const BAD_HEADERS = ['missing_headers', 'oversized_headers'];

testTable(operatorKeyMachine, [
  ['configured, it is usable', absent, { ...configure, publicKey: 'key-1' }, '', isUsable],
  ['added, it is usable, and says who added it', absent, add, 'added', isAdded],
  ['not added if its id or key is taken', absent, { ...add, isTaken: true }, 'operator_key_exists'],
  ['usable, it is not added', standard, add, 'operator_key_exists'],
  ['revoked, it is not added', switchedOff, add, 'operator_key_exists'],
  ['usable, its tier is changed', standard, setTier, 'tier_set', isPrivileged],
  ['a tier that it has is not changed', privileged, setLastTier, 'tier_unchanged'],
  ['a configured tier is not changed', standard, setConfigured, 'operator_key_configured'],
  ['the last privileged key stays so', privileged, demoteLast, 'last_privileged_operator_key'],
  ['another becomes a standard one', privileged, demote, 'tier_set', isStandard],
  ['revoked, its tier is not changed', switchedOff, setTier, 'operator_key_revoked'],
  ['an unknown key has no tier', absent, setTier, 'unknown_operator_key'],
  ['a standard key satisfies a standard requirement', standard, authenticate, 'authenticated'],
  ['a privileged key satisfies a standard requirement', privileged, authenticate, 'authenticated'],
  ['a privileged key satisfies a privileged one', privileged, forPrivileged, 'authenticated'],
  ['a standard key never does', standard, forPrivileged, 'insufficient_operator_tier'],
  // Before the tier.
  ...[...BAD_HEADERS, ...FAILING].flatMap((proof) =>
    inEach([standard], [proof, { ...forPrivileged, proof }, `admin_auth_failed: ${proof}`]),
  ),
  // Before all else.
  ...BAD_HEADERS.flatMap((proof) =>
    inEach(gone, [proof, { ...authenticate, proof }, `admin_auth_failed: ${proof}`]),
  ),
  ['that comes before its proof', absent, badTime, 'unknown_admin_key: unknown_key'],
  ['an unknown key with a valid proof', absent, authenticate, 'unknown_admin_key: unknown_key'],
  // Only the audit reason differs.
  ['a revoked key is as unknown', switchedOff, authenticate, 'unknown_admin_key: revoked_key'],
  ['before its nonce and signature', switchedOff, replayed, 'unknown_admin_key: revoked_key'],
  ['revoked, it is off for good', standard, switchOff, 'revoked', { revoked: isOff }],
  ['a key can revoke itself', privileged, switchItselfOff, 'revoked', isOffItself],
  ['the last usable key is not revoked', privileged, lastUsable, 'last_active_operator_key'],
  // Where that is to be prevented.
  ['the last privileged key stays', privileged, guarded, 'last_privileged_operator_key'],
  ['otherwise it is revoked', privileged, lastPrivileged, 'revoked', { revoked: isOff }],
  ['a standard key is revoked in any case', standard, guarded, 'revoked', { revoked: isOff }],
  ['the last usable key comes first', privileged, lastOfAll, 'last_active_operator_key'],
  ['revoked again, nothing changes', switchedOff, switchOff, 'already_revoked'],
  ['that comes before the last key', switchedOff, lastUsable, 'already_revoked'],
  ['an unknown key cannot be revoked', absent, switchOff, 'unknown_operator_key'],
  ['that comes before the last key too', absent, lastUsable, 'unknown_operator_key'],
]);

testUnhandled(operatorKeyMachine, [
  ['configuring a key that is usable', standard, configure],
  ['un-revoking a key by configuring it', switchedOff, configure],
]);

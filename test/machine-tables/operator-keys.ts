import { type OperatorKey, operatorKeyMachine } from '../../machines/operator-key.ts';
import { NOW, testTable, testUnhandled } from '../support/state-tables.ts';

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
const setTier = {
  type: 'set_tier',
  tier: 'privileged',
  isConfigured: false,
  otherPrivilegedKeys: 1,
} as const;
const off = {
  value: 'revoked',
  facts: { revokedAt: NOW, reason: 'rotated', revokedBy: 'ops-1' },
};
const failing = (reason: string) => [{ refusal: 'admin_auth_failed', reason }];
const unknown = (reason: string) => [{ refusal: 'unknown_admin_key', reason }];

testTable(operatorKeyMachine, [
  {
    name: 'configured, it is usable with its tier',
    event: { type: 'configure', tier: 'privileged', publicKey: 'key-1' },
    emits: [],
    to: { value: 'usable', facts: { ...key, tier: 'privileged', publicKey: 'key-1' } },
  },
  {
    name: 'added, it is usable with its tier, and says who added it',
    event: add,
    emits: ['added'],
    to: {
      value: 'usable',
      facts: { ...key, tier: 'privileged', publicKey: 'key-1', addedAt: NOW, addedBy: 'ops-1' },
    },
  },
  {
    name: 'one whose id or public key is taken is not added',
    event: { ...add, isTaken: true },
    emits: ['operator_key_exists'],
  },
  { name: 'usable, it is not added', from: standard, event: add, emits: ['operator_key_exists'] },
  {
    name: 'revoked, it is not added',
    from: switchedOff,
    event: add,
    emits: ['operator_key_exists'],
  },
  {
    name: 'usable, its tier is changed',
    from: standard,
    event: setTier,
    emits: ['tier_set'],
    to: { value: 'usable', facts: { tier: 'privileged' } },
  },
  {
    name: 'a tier that it has is not changed',
    from: privileged,
    event: { ...setTier, otherPrivilegedKeys: 0 },
    emits: ['tier_unchanged'],
  },
  {
    name: 'the tier of a configured key is not changed',
    from: standard,
    event: { ...setTier, isConfigured: true },
    emits: ['operator_key_configured'],
  },
  {
    name: 'the last privileged key keeps its tier',
    from: privileged,
    event: { ...setTier, tier: 'standard', otherPrivilegedKeys: 0 },
    emits: ['last_privileged_operator_key'],
  },
  {
    name: 'another privileged key becomes a standard one',
    from: privileged,
    event: { ...setTier, tier: 'standard' },
    emits: ['tier_set'],
    to: { value: 'usable', facts: { tier: 'standard' } },
  },
  {
    name: 'revoked, its tier is not changed',
    from: switchedOff,
    event: setTier,
    emits: ['operator_key_revoked'],
  },
  { name: 'an unknown key has no tier', event: setTier, emits: ['unknown_operator_key'] },
  {
    name: 'a standard key satisfies a standard requirement',
    from: standard,
    event: authenticate,
    emits: ['authenticated'],
  },
  {
    name: 'a privileged key satisfies a standard requirement',
    from: privileged,
    event: authenticate,
    emits: ['authenticated'],
  },
  {
    name: 'a privileged key satisfies a privileged requirement',
    from: privileged,
    event: forPrivileged,
    emits: ['authenticated'],
  },
  {
    name: 'a standard key never satisfies a privileged requirement',
    from: standard,
    event: forPrivileged,
    emits: ['insufficient_operator_tier'],
  },
  ...[
    'missing_headers',
    'oversized_headers',
    'invalid_timestamp',
    'stale_timestamp',
    'nonce_replay',
    'invalid_signature',
  ].map((proof) => ({
    name: `${proof} is refused before the tier is checked`,
    from: standard,
    event: { ...forPrivileged, proof },
    emits: failing(proof),
  })),
  {
    name: 'an unknown key is refused before its timestamp, nonce and signature',
    event: { ...forPrivileged, proof: 'invalid_timestamp' },
    emits: unknown('unknown_key'),
  },
  {
    name: 'an unknown key is refused although its proof is valid',
    event: authenticate,
    emits: unknown('unknown_key'),
  },
  {
    name: 'a revoked key is refused as an unknown one; only the audit reason differs',
    from: switchedOff,
    event: authenticate,
    emits: unknown('revoked_key'),
  },
  {
    name: 'a revoked key is refused before its nonce and signature',
    from: switchedOff,
    event: { ...authenticate, proof: 'nonce_replay' },
    emits: unknown('revoked_key'),
  },
  ...['missing_headers', 'oversized_headers'].flatMap((proof) => [
    {
      name: `${proof} is reported before the unknown key`,
      event: { ...authenticate, proof },
      emits: failing(proof),
    },
    {
      name: `${proof} is reported before the revoked key`,
      from: switchedOff,
      event: { ...authenticate, proof },
      emits: failing(proof),
    },
  ]),
  {
    name: 'revoked, it is off for good',
    from: standard,
    event: switchOff,
    emits: ['revoked'],
    to: off,
  },
  {
    name: 'a key can revoke itself',
    from: privileged,
    event: { ...switchOff, by: 'this very key' },
    emits: ['revoked'],
    to: { value: 'revoked', facts: { ...off.facts, revokedBy: 'this very key' } },
  },
  {
    name: 'the last usable key is not revoked',
    from: privileged,
    event: { ...switchOff, otherUsableKeys: 0 },
    emits: ['last_active_operator_key'],
  },
  {
    name: 'the last privileged key is not revoked where that was to be prevented',
    from: privileged,
    event: { ...switchOff, otherPrivilegedKeys: 0, unlessLastPrivileged: true },
    emits: ['last_privileged_operator_key'],
  },
  {
    name: 'the last privileged key is revoked otherwise',
    from: privileged,
    event: { ...switchOff, otherPrivilegedKeys: 0 },
    emits: ['revoked'],
    to: off,
  },
  {
    name: 'a standard key is revoked although no privileged key is left',
    from: standard,
    event: { ...switchOff, otherPrivilegedKeys: 0, unlessLastPrivileged: true },
    emits: ['revoked'],
    to: off,
  },
  {
    name: 'the last usable key is reported before the last privileged one',
    from: privileged,
    event: {
      ...switchOff,
      otherUsableKeys: 0,
      otherPrivilegedKeys: 0,
      unlessLastPrivileged: true,
    },
    emits: ['last_active_operator_key'],
  },
  {
    name: 'revoked again, nothing changes',
    from: switchedOff,
    event: switchOff,
    emits: ['already_revoked'],
  },
  {
    name: 'a repeated revocation is reported before the last key',
    from: switchedOff,
    event: { ...switchOff, otherUsableKeys: 0 },
    emits: ['already_revoked'],
  },
  { name: 'an unknown key cannot be revoked', event: switchOff, emits: ['unknown_operator_key'] },
  {
    name: 'an unknown key is reported before the last key',
    event: { ...switchOff, otherUsableKeys: 0 },
    emits: ['unknown_operator_key'],
  },
]);

testUnhandled(operatorKeyMachine, [
  ['configuring a key that is usable', standard, { type: 'configure', tier: 'privileged' }],
  ['un-revoking a key by configuring it', switchedOff, { type: 'configure', tier: 'privileged' }],
]);

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AnyStateMachine } from 'xstate';
import { type Certificate, certificateMachine } from '../machines/certificate.ts';
import { type Crl, crlMachine } from '../machines/crl.ts';
import { type Invite, inviteMachine } from '../machines/invite.ts';
import { type OperatorKey, operatorKeyMachine } from '../machines/operator-key.ts';
import { policyMachine } from '../machines/policy.ts';
import { type Resting, step } from '../machines/step.ts';
import { readPolicyManifest } from '../src/records/policy-manifest.ts';

/** One row of a state table: what an event does to a subject that is in a state. */
interface Row {
  readonly name: string;
  readonly from?: Resting;
  readonly event: { readonly type: string; readonly [field: string]: unknown };
  /** What the machine emits; a refusal is written as its name, or as name and audit reason. */
  readonly emits: readonly (string | { readonly refusal: string; readonly reason?: string })[];
  /** The state and the facts that change; absent when the event leaves the subject as it was. */
  readonly to?: { readonly value: string; readonly facts: object };
}

const NOW = Date.UTC(2026, 2, 1, 10);
const HOUR = 3_600_000;

function testTable(machine: AnyStateMachine, rows: readonly Row[]): void {
  for (const { name, from, event, emits, to } of rows) {
    test(`${machine.id}: ${name}`, () => {
      const before = structuredClone(from);
      const { next, emitted, changed } = step(machine, from, event);
      assert.deepEqual(emitted.map(plainly), emits);
      assert.deepEqual(from, before, 'the subject at rest is not written to');
      assert.equal(changed, to !== undefined);
      if (to === undefined) {
        assert.equal(next.value, from?.value ?? 'absent');
        if (from !== undefined) assert.deepEqual(next.context, from.context);
      } else {
        assert.equal(next.value, to.value);
        assert.deepEqual(next.context, { ...from?.context, ...to.facts });
        assert.deepEqual(structuredClone(next.context), next.context, 'the context is plain data');
      }
    });
  }
}

function plainly(event: object): string | object {
  const { type, ...rest } = event as { type: string; refusal?: string; reason?: string };
  if (type !== 'refused') return type;
  return rest.reason === undefined ? String(rest.refusal) : rest;
}

function testUnhandled(
  machine: AnyStateMachine,
  cases: readonly (readonly [string, Resting | undefined, Row['event']])[],
): void {
  for (const [name, from, event] of cases) {
    test(`${machine.id}: ${name} is a programming error and throws`, () => {
      assert.throws(() => step(machine, from, event), {
        message: `${machine.id} in state ${from?.value ?? 'absent'} does not take ${event.type}`,
      });
    });
  }
}

// Invite (spec, state table; wire rules 4.3)

const invite: Invite = {
  roles: ['role:client'],
  maxValidityHours: 72,
  createdAt: NOW - HOUR,
  expiresAt: NOW,
  recipient: null,
  usedAt: null,
  usedBy: null,
};
const unused = { value: 'unused', context: invite };
const bound = { value: 'unused', context: { ...invite, recipient: 'key-1' } };
const consumed = {
  value: 'consumed',
  context: { ...invite, usedAt: NOW - 1, usedBy: 'key-0' },
};
const join = {
  type: 'join',
  at: NOW,
  nodePublicKey: 'key-1',
  keyCompromised: false,
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
  { name: 'consumed, it is refused', from: consumed, event: join, emits: ['invalid_invite_token'] },
  { name: 'one that does not exist is refused', event: join, emits: ['invalid_invite_token'] },
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
    name: 'expiry is refused before the proof is looked at',
    from: unused,
    event: { ...join, at: NOW + HOUR, proof: 'invalid_signature' },
    emits: ['invalid_invite_token'],
  },
  {
    name: 'another key is refused before its proof is looked at',
    from: bound,
    event: { ...join, nodePublicKey: 'key-2', proof: 'invalid_signature' },
    emits: ['invalid_invite_token'],
  },
  {
    name: 'a consumed token is refused before the proof is looked at',
    from: consumed,
    event: { ...join, proof: 'invalid_signature' },
    emits: ['invalid_invite_token'],
  },
]);

testUnhandled(inviteMachine, [
  ['creating an invite that is unused', unused, { type: 'create', invite }],
  ['creating an invite that is consumed', consumed, { type: 'create', invite }],
  ['an event of another machine', unused, { type: 'revoke' }],
]);

// Node certificate (spec, state table; wire rules 4.4, 4.5, 4.8)

const certificate: Certificate = {
  nodePublicKey: 'key-1',
  roles: ['role:client', 'role:anchor'],
  issuedAt: NOW - HOUR,
  expiresAt: NOW + HOUR,
  maxValidityHours: 72,
  remoteAddr: '192.0.2.7',
  renewedFrom: null,
  renewedAt: null,
  supersededFrom: null,
  revokedAt: null,
  revocationReason: null,
  crlSequence: null,
};
const issued = { value: 'issued', context: certificate };
const renewed = {
  value: 'renewed',
  context: { ...certificate, renewedAt: NOW - 60_000, supersededFrom: null },
};
const superseded = {
  value: 'renewed',
  context: { ...certificate, renewedAt: NOW - 60_000, supersededFrom: NOW },
};
const revoked = {
  value: 'revoked',
  context: {
    ...certificate,
    revokedAt: NOW - 1,
    revocationReason: 'cessation_of_operation',
    crlSequence: 3,
  },
};
const proven = { at: NOW, nodePublicKey: 'key-1', proof: 'valid' } as const;
const beat = { type: 'heartbeat', ...proven } as const;
const renew = { type: 'renew', ...proven, roles: null, supersededFrom: null } as const;
const revoke = { type: 'revoke', at: NOW, reason: 'key_compromise', crlSequence: 4 } as const;
const revocation = {
  value: 'revoked',
  facts: { revokedAt: NOW, revocationReason: 'key_compromise', crlSequence: 4 },
};

/** Refusals that heartbeat and renewal share, in the order of wire rules 4.4, each with all later ones. */
function nodeChecks(request: typeof beat | typeof renew): readonly Row[] {
  const { type } = request;
  const outside = { ...request, at: certificate.expiresAt };
  const early = { ...request, at: certificate.issuedAt - 1 };
  return [
    {
      name: `a ${type} for a certificate that does not exist is refused`,
      event: request,
      emits: ['unknown_certificate'],
    },
    {
      name: `a ${type} of another key is refused before its proof and the window`,
      from: issued,
      event: { ...outside, nodePublicKey: 'key-2', proof: 'invalid_signature' },
      emits: ['certificate_key_mismatch'],
    },
    {
      name: `a ${type} of another key is refused before the revocation is told`,
      from: revoked,
      event: { ...request, nodePublicKey: 'key-2' },
      emits: ['certificate_key_mismatch'],
    },
    {
      name: `a ${type} of a revoked certificate is refused before its proof, with the reason of revocation`,
      from: revoked,
      event: { ...outside, proof: 'invalid_signature' },
      emits: [{ refusal: 'certificate_revoked', reason: 'cessation_of_operation' }],
    },
    {
      name: `a ${type} with a failing proof is refused before the window, with its reason`,
      from: issued,
      event: { ...outside, proof: 'nonce_replay' },
      emits: [{ refusal: 'node_auth_failed', reason: 'nonce_replay' }],
    },
    {
      name: `a ${type} before the certificate was issued is refused`,
      from: issued,
      event: early,
      emits: ['certificate_not_yet_valid'],
    },
    {
      name: `a ${type} at the instant of expiry is refused`,
      from: issued,
      event: outside,
      emits: ['certificate_expired'],
    },
    {
      name: `a ${type} of a renewed certificate that expired is refused as expired`,
      from: superseded,
      event: outside,
      emits: ['certificate_expired'],
    },
    {
      name: `a ${type} at the instant a renewed certificate is superseded is refused`,
      from: superseded,
      event: request,
      emits: ['certificate_superseded'],
    },
    {
      name: `a ${type} with a failing proof is refused before the supersession is told`,
      from: superseded,
      event: { ...request, proof: 'stale_timestamp' },
      emits: [{ refusal: 'node_auth_failed', reason: 'stale_timestamp' }],
    },
  ];
}

const takeover = {
  name: 'the roles a node claims must be those of the certificate',
  from: issued,
  emits: ['renewal_role_change_forbidden'],
};

testTable(certificateMachine, [
  {
    name: 'issued, it holds what it was issued with',
    event: { type: 'issue', certificate },
    emits: [],
    to: { value: 'issued', facts: certificate },
  },
  { name: 'a heartbeat is taken', from: issued, event: beat, emits: ['alive'] },
  {
    name: 'a heartbeat at the instant of issue is taken',
    from: issued,
    event: { ...beat, at: certificate.issuedAt },
    emits: ['alive'],
  },
  {
    name: 'a heartbeat a millisecond before expiry is taken',
    from: issued,
    event: { ...beat, at: certificate.expiresAt - 1 },
    emits: ['alive'],
  },
  {
    name: 'renewed without grace, it goes on living',
    from: renewed,
    event: beat,
    emits: ['alive'],
  },
  {
    name: 'renewed with grace, it lives until the grace is over',
    from: superseded,
    event: { ...beat, at: NOW - 1 },
    emits: ['alive'],
  },
  {
    name: 'a renewal without claimed roles is taken',
    from: issued,
    event: renew,
    emits: ['renewed'],
    to: { value: 'renewed', facts: { renewedAt: NOW, supersededFrom: null } },
  },
  {
    name: 'a renewal with the same roles in another order is taken, and notes when it is superseded',
    from: issued,
    event: { ...renew, roles: ['role:anchor', 'role:client'], supersededFrom: NOW + HOUR },
    emits: ['renewed'],
    to: { value: 'renewed', facts: { renewedAt: NOW, supersededFrom: NOW + HOUR } },
  },
  {
    name: 'a renewed certificate can be renewed again',
    from: renewed,
    event: renew,
    emits: ['renewed'],
    to: { value: 'renewed', facts: { renewedAt: NOW, supersededFrom: null } },
  },
  ...nodeChecks(beat),
  ...nodeChecks(renew),
  { ...takeover, event: { ...renew, roles: ['role:client'] } },
  { ...takeover, event: { ...renew, roles: ['role:client', 'role:anchor', 'role:x'] } },
  { ...takeover, event: { ...renew, roles: ['role:client', 'role:client'] } },
  { ...takeover, event: { ...renew, roles: [] } },
  {
    name: 'claimed roles that are no list are malformed',
    from: issued,
    event: { ...renew, roles: 'malformed' },
    emits: ['malformed_roles'],
  },
  {
    name: 'an expired certificate is refused before its roles are looked at',
    from: issued,
    event: { ...renew, at: certificate.expiresAt, roles: ['role:x'] },
    emits: ['certificate_expired'],
  },
  {
    name: 'a failing proof is refused before malformed roles',
    from: issued,
    event: { ...renew, proof: 'invalid_signature', roles: 'malformed' },
    emits: [{ refusal: 'node_auth_failed', reason: 'invalid_signature' }],
  },
  { name: 'revoked when issued', from: issued, event: revoke, emits: ['revoked'], to: revocation },
  {
    name: 'revoked when renewed',
    from: renewed,
    event: revoke,
    emits: ['revoked'],
    to: revocation,
  },
  {
    name: 'revoked after it expired',
    from: issued,
    event: { ...revoke, at: certificate.expiresAt + HOUR },
    emits: ['revoked'],
    to: {
      value: 'revoked',
      facts: { ...revocation.facts, revokedAt: certificate.expiresAt + HOUR },
    },
  },
  {
    name: 'revoked again, nothing changes: time, reason and place in the list stay',
    from: revoked,
    event: revoke,
    emits: ['already_revoked'],
  },
  {
    name: 'one that does not exist cannot be revoked',
    event: revoke,
    emits: ['certificate_not_found'],
  },
]);

testUnhandled(certificateMachine, [
  ['issuing a certificate that is issued', issued, { type: 'issue', certificate }],
  ['issuing a certificate that is renewed', renewed, { type: 'issue', certificate }],
  ['issuing a certificate that is revoked', revoked, { type: 'issue', certificate }],
  ['an event of another machine', issued, { type: 'authenticate' }],
  ['an event without a name', issued, { type: '' }],
]);

// Operator key (spec, Operator authentication; wire rules 2.3, 4.9)

const key: OperatorKey = { tier: 'standard', revokedAt: null, reason: null, revokedBy: null };
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
    event: { type: 'configure', tier: 'privileged' },
    emits: [],
    to: { value: 'usable', facts: { ...key, tier: 'privileged' } },
  },
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
    name: `${proof} is refused before the tier is looked at`,
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
      name: `${proof} is told before that the key is unknown`,
      event: { ...authenticate, proof },
      emits: failing(proof),
    },
    {
      name: `${proof} is told before that the key is revoked`,
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
    name: 'revoked again, nothing changes',
    from: switchedOff,
    event: switchOff,
    emits: ['already_revoked'],
  },
  {
    name: 'revoked again is told before that no other key is left',
    from: switchedOff,
    event: { ...switchOff, otherUsableKeys: 0 },
    emits: ['already_revoked'],
  },
  { name: 'an unknown key cannot be revoked', event: switchOff, emits: ['unknown_operator_key'] },
  {
    name: 'an unknown key is told before that no other key is left',
    event: { ...switchOff, otherUsableKeys: 0 },
    emits: ['unknown_operator_key'],
  },
]);

testUnhandled(operatorKeyMachine, [
  ['configuring a key that is usable', standard, { type: 'configure', tier: 'privileged' }],
  ['un-revoking a key by configuring it', switchedOff, { type: 'configure', tier: 'privileged' }],
]);

// Policy (spec, state table)

const manifest = readPolicyManifest({
  policy_id: 'policy-alpha-v0.1',
  issued_at: '2026-03-01T10:00:00Z',
  issued_by: 'na',
  min_client_version: '0.1.0',
});
const firstRead = { type: 'first_read', at: NOW, manifest };
const active = { value: 'active', context: { manifest, createdAt: NOW - 1 } };

testTable(policyMachine, [
  {
    name: 'the first read of a network without one creates the default',
    event: firstRead,
    emits: ['created'],
    to: { value: 'active', facts: { manifest, createdAt: NOW } },
  },
  {
    name: 'a later read creates nothing',
    from: active,
    event: { ...firstRead, manifest: null },
    emits: ['already_active'],
  },
]);

// Certificate revocation list (wire rules 4.8, 4.15)

const version: Crl = {
  sequence: 3,
  crlId: 'crl-3',
  issuedAt: NOW - 24 * HOUR,
  nextUpdate: NOW,
  digest: 'd3',
};
const current = { value: 'current', context: version };
const lapsed = { value: 'lapsed', context: version };
const next: Crl = { ...version, sequence: 4, crlId: 'crl-4', nextUpdate: NOW + 24 * HOUR };
const first: Crl = { ...next, sequence: 0 };

testTable(crlMachine, [
  {
    name: 'the first version has sequence 0',
    event: { type: 'publish', version: first },
    emits: ['published'],
    to: { value: 'current', facts: first },
  },
  {
    name: 'a version follows the one before it',
    from: current,
    event: { type: 'publish', version: next },
    emits: ['published'],
    to: { value: 'current', facts: next },
  },
  {
    name: 'a lapsed list is followed by the next version',
    from: lapsed,
    event: { type: 'publish', version: next },
    emits: ['published'],
    to: { value: 'current', facts: next },
  },
  {
    name: 'a list lapses at the instant of its next update',
    from: current,
    event: { type: 'lapse', at: NOW },
    emits: ['lapsed'],
    to: { value: 'lapsed', facts: {} },
  },
  {
    name: 'a list stays current until then',
    from: current,
    event: { type: 'lapse', at: NOW - 1 },
    emits: ['current'],
  },
]);

test('crl: a list that does not exist has lapsed, so that the first version is published', () => {
  const { next: after, emitted } = step(crlMachine, undefined, { type: 'lapse', at: NOW });
  assert.equal(after.value, 'lapsed');
  assert.deepEqual(emitted, [{ type: 'lapsed' }]);
  const published = step(crlMachine, after, { type: 'publish', version: first });
  assert.equal(published.next.value, 'current');
});

testUnhandled(crlMachine, [
  ['naming a sequence twice', current, { type: 'publish', version: { ...next, sequence: 3 } }],
  ['going back', current, { type: 'publish', version: { ...next, sequence: 2 } }],
  ['leaving a sequence out', current, { type: 'publish', version: { ...next, sequence: 5 } }],
  [
    'leaving a sequence out after a lapse',
    lapsed,
    { type: 'publish', version: { ...next, sequence: 5 } },
  ],
  ['beginning at 1', undefined, { type: 'publish', version: { ...first, sequence: 1 } }],
]);

// The door to XState

test('subjects of one machine do not disturb each other', () => {
  const one = step(inviteMachine, undefined, { type: 'create', invite });
  const two = step(inviteMachine, undefined, { type: 'create', invite: bound.context });
  const consumedOne = step(inviteMachine, one.next, join);
  assert.deepEqual(one.next, unused);
  assert.deepEqual(two.next, bound);
  assert.equal(consumedOne.next.value, 'consumed');
  assert.deepEqual(step(inviteMachine, two.next, join).emitted, [{ type: 'consumed' }]);
  assert.deepEqual(consumedOne.emitted, [{ type: 'consumed' }]);
});

test('a subject that went through JSON and back takes events as before', () => {
  const resting = JSON.parse(JSON.stringify(issued)) as Resting;
  assert.deepEqual(step(certificateMachine, resting, beat).emitted, [{ type: 'alive' }]);
  const stopped = step(certificateMachine, resting, revoke).next;
  const reloaded = JSON.parse(JSON.stringify(stopped)) as Resting;
  assert.deepEqual(step(certificateMachine, reloaded, revoke).emitted, [
    { type: 'already_revoked' },
  ]);
});

test('a refusal after a change, and a change after a throw, emit only what is theirs', () => {
  assert.throws(() => step(inviteMachine, unused, { type: 'create', invite }));
  assert.deepEqual(step(inviteMachine, unused, join).emitted, [{ type: 'consumed' }]);
  assert.deepEqual(step(inviteMachine, consumed, join).emitted, [
    { type: 'refused', refusal: 'invalid_invite_token' },
  ]);
});

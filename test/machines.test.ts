import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { type AnyStateMachine, StateMachine } from 'xstate';
import {
  type AgentRegistration,
  agentRegistrationMachine,
} from '../machines/agent-registration.ts';
import { type Attestation, attestationMachine } from '../machines/attestation.ts';
import { type Nullifier, nullifierMachine } from '../machines/capability-nullifier.ts';
import { type Certificate, certificateMachine, UNTOUCHED } from '../machines/certificate.ts';
import {
  MAX_LIVE_CERTIFICATES,
  MAX_UNEXPIRED_CERTIFICATES,
} from '../machines/certificate-limit.ts';
import { type Crl, crlMachine } from '../machines/crl.ts';
import { licensePolicyMachine } from '../machines/data-license-policy.ts';
import { type Invite, inviteMachine } from '../machines/invite.ts';
import { nodeKeyMachine } from '../machines/node-key.ts';
import { type OperatorKey, operatorKeyMachine } from '../machines/operator-key.ts';
import { policyMachine } from '../machines/policy.ts';
import {
  recognitionPolicyMachine,
  type StoredRecognitionPolicy,
} from '../machines/recognition-policy.ts';
import { type Treaty, treatyMachine } from '../machines/recognition-treaty.ts';
import { removalCountMachine } from '../machines/removal-count.ts';
import { restoredRevocationMachine } from '../machines/restored-revocation.ts';
import {
  type ImportedFeed,
  type ImportedRevocation,
  importedRevocationMachine,
  type RevocationImport,
  revocationFeedMachine,
  revocationImportMachine,
} from '../machines/revocation-feed.ts';
import { type SovereignFeed, sovereignFeedMachine } from '../machines/sovereign-feed.ts';
import { type Resting, step } from '../machines/step.ts';
import { webhookMachine } from '../machines/webhook.ts';
import { readPolicyManifest } from '../src/protocol/records/policy-manifest.ts';
import { modulePath, PROJECT } from './support/project.ts';

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
const DAY = 24 * HOUR;

/** How often each state took each event in the tables below: `machine state event`. */
const rowsOf = new Map<string, number>();
const tested = new Set<AnyStateMachine>();

function testTable(machine: AnyStateMachine, rows: readonly Row[]): void {
  tested.add(machine);
  for (const { from, event } of rows) {
    const taken = `${machine.id} ${from?.value ?? 'absent'} ${event.type}`;
    rowsOf.set(taken, (rowsOf.get(taken) ?? 0) + 1);
  }
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

// Invite [service-states-invite], [core-4-3]

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
const withdrawn = {
  value: 'withdrawn',
  context: { ...invite, withdrawnAt: NOW - 1, withdrawnBy: 'ops-1' },
};
const takeBack = { type: 'withdraw', at: NOW, by: 'ops-2' } as const;
const join = {
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

// Node certificate [service-states-certificate], [core-4-4], [core-4-5], [core-4-8]

const certificate: Certificate = {
  nodePublicKey: 'key-1',
  roles: ['role:client', 'role:anchor'],
  issuedAt: NOW - HOUR,
  expiresAt: NOW + HOUR,
  maxValidityHours: 72,
  remoteAddr: '192.0.2.7',
  ...UNTOUCHED,
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
const proven = {
  at: NOW,
  nodePublicKey: 'key-1',
  keyCompromised: false,
  proof: 'valid',
} as const;
const beat = { type: 'heartbeat', ...proven } as const;
const renew = {
  type: 'renew',
  ...proven,
  roles: null,
  supersededFrom: null,
  liveCertificates: MAX_LIVE_CERTIFICATES,
  unexpiredCertificates: MAX_UNEXPIRED_CERTIFICATES - 1,
} as const;
const revoke = { type: 'revoke', at: NOW, reason: 'key_compromise', crlSequence: 4 } as const;
const revocation = {
  value: 'revoked',
  facts: { revokedAt: NOW, revocationReason: 'key_compromise', crlSequence: 4 },
};

/** Refusals that heartbeat and renewal share, in the order of [core-4-4], each with all later ones. */
function nodeChecks(request: typeof beat | typeof renew): readonly Row[] {
  const { type } = request;
  const late = { ...request, at: certificate.expiresAt };
  return [
    {
      name: `a ${type} for a certificate that does not exist is refused`,
      event: request,
      emits: ['unknown_certificate'],
    },
    {
      name: `a ${type} of another key is refused before the revocation is reported`,
      from: revoked,
      event: { ...request, nodePublicKey: 'key-2' },
      emits: ['certificate_key_mismatch'],
    },
    {
      name: `a ${type} of a revoked certificate is refused before its proof, with the reason of revocation`,
      from: revoked,
      event: { ...late, proof: 'invalid_signature' },
      emits: [{ refusal: 'certificate_revoked', reason: 'cessation_of_operation' }],
    },
    ...[issued, renewed, superseded].flatMap((from): Row[] => [
      {
        name: `${from.value}, a ${type} of another key is refused before its proof and the window`,
        from,
        event: { ...late, nodePublicKey: 'key-2', proof: 'invalid_signature' },
        emits: ['certificate_key_mismatch'],
      },
      {
        name: `${from.value}, a ${type} of another key is refused before the compromise is reported`,
        from,
        event: { ...request, nodePublicKey: 'key-2', keyCompromised: true },
        emits: ['certificate_key_mismatch'],
      },
      {
        name: `${from.value}, a ${type} of a compromised key is refused as revoked, before its proof and the window`,
        from,
        event: { ...late, keyCompromised: true, proof: 'invalid_signature' },
        emits: [{ refusal: 'certificate_revoked', reason: 'key_compromise' }],
      },
      {
        name: `${from.value}, a ${type} with a failing proof is refused before the window, with its reason`,
        from,
        event: { ...late, proof: 'nonce_replay' },
        emits: [{ refusal: 'node_auth_failed', reason: 'nonce_replay' }],
      },
      {
        name: `${from.value}, a ${type} before the certificate was issued is refused`,
        from,
        event: { ...request, at: certificate.issuedAt - 1 },
        emits: ['certificate_not_yet_valid'],
      },
      {
        name: `${from.value}, a ${type} at the instant of expiry is refused`,
        from,
        event: late,
        emits: ['certificate_expired'],
      },
    ]),
    {
      name: `a ${type} at the instant a renewed certificate is superseded is refused`,
      from: superseded,
      event: request,
      emits: ['certificate_superseded'],
    },
    {
      name: `a ${type} with a failing proof is refused before the supersession is reported`,
      from: superseded,
      event: { ...request, proof: 'stale_timestamp' },
      emits: [{ refusal: 'node_auth_failed', reason: 'stale_timestamp' }],
    },
  ];
}

/** The roles that a renewal claims; checked last. */
const roleChecks = [issued, renewed].flatMap((from): Row[] => [
  ...[
    ['role:client'],
    ['role:client', 'role:anchor', 'role:x'],
    ['role:client', 'role:client'],
    [],
  ].map((roles) => ({
    name: `${from.value}, the claimed roles [${roles.join(' ')}] are not those of the certificate`,
    from,
    event: { ...renew, roles },
    emits: ['renewal_role_change_forbidden'],
  })),
  {
    name: `${from.value}, claimed roles that are no list are malformed`,
    from,
    event: { ...renew, roles: 'malformed' },
    emits: ['malformed_roles'],
  },
  {
    name: `${from.value}, a key with both maximum numbers of certificates gets no further one`,
    from,
    event: { ...renew, unexpiredCertificates: MAX_UNEXPIRED_CERTIFICATES },
    emits: ['too_many_live_certificates'],
  },
  {
    name: `${from.value}, a key with room for a live certificate may have any number of superseded ones`,
    from,
    event: {
      ...renew,
      liveCertificates: MAX_LIVE_CERTIFICATES - 1,
      unexpiredCertificates: MAX_UNEXPIRED_CERTIFICATES,
    },
    emits: ['renewed'],
    to: { value: 'renewed', facts: { renewedAt: NOW } },
  },
  {
    name: `${from.value}, the renewal of a newer certificate of the key supersedes it at once`,
    from,
    event: { type: 'supersede', at: NOW },
    emits: ['superseded'],
    to: { value: from.value, facts: { supersededFrom: NOW, renewedAt: from.context.renewedAt } },
  },
  {
    name: `${from.value}, other roles are reported before the number of certificates`,
    from,
    event: { ...renew, roles: ['role:x'], unexpiredCertificates: MAX_UNEXPIRED_CERTIFICATES },
    emits: ['renewal_role_change_forbidden'],
  },
  {
    name: `${from.value}, expiry is reported before the roles are checked`,
    from,
    event: { ...renew, at: certificate.expiresAt, roles: ['role:x'] },
    emits: ['certificate_expired'],
  },
  {
    name: `${from.value}, a failing proof is reported before malformed roles`,
    from,
    event: { ...renew, proof: 'invalid_signature', roles: 'malformed' },
    emits: [{ refusal: 'node_auth_failed', reason: 'invalid_signature' }],
  },
]);

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
  {
    name: 'renewed again, the grace still runs from the first renewal',
    from: superseded,
    event: { ...renew, at: NOW - 1, supersededFrom: NOW + HOUR },
    emits: ['renewed'],
    to: { value: 'renewed', facts: { renewedAt: NOW - 1 } },
  },
  ...nodeChecks(beat),
  ...nodeChecks(renew),
  ...roleChecks,
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

// Operator key [service-operator-authentication], [core-2-3], [core-4-9]

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

// Policy [service-states-policy]

const manifest = readPolicyManifest({
  policy_id: 'policy-alpha-v0.1',
  issued_at: '2026-03-01T10:00:00Z',
  issued_by: 'na',
  min_client_version: '0.1.0',
});
const another = { ...manifest, policy_id: 'policy-2' };
const firstRead = { type: 'first_read', at: NOW, manifest } as const;
const publishPolicy = { type: 'publish', at: NOW, manifest: another } as const;
const activePolicy = { value: 'active', context: { manifest, createdAt: NOW - 1 } };
const retiredPolicy = { value: 'retired', context: { manifest, createdAt: NOW - 1 } };
const activated = { emits: ['activated'] };

testTable(policyMachine, [
  {
    name: 'the first read of a network without one creates the default',
    event: firstRead,
    ...activated,
    to: { value: 'active', facts: { manifest, createdAt: NOW } },
  },
  {
    name: 'a later read leaves it as it is',
    from: activePolicy,
    event: { ...firstRead, manifest: another },
    ...activated,
  },
  ...[undefined, activePolicy, retiredPolicy].map((from) => ({
    name: `published when ${from?.value ?? 'new'}, that content is active`,
    ...(from && { from }),
    event: publishPolicy,
    ...activated,
    to: { value: 'active', facts: { manifest: another, createdAt: NOW } },
  })),
  {
    name: 'another version becomes active, and this one retires',
    from: activePolicy,
    event: { type: 'retire' },
    emits: ['retired'],
    to: { value: 'retired', facts: {} },
  },
  {
    name: 'rolled back to, it is active again as it was',
    from: retiredPolicy,
    event: { type: 'roll_back' },
    ...activated,
    to: { value: 'active', facts: {} },
  },
  {
    name: 'rolled back to while active',
    from: activePolicy,
    event: { type: 'roll_back' },
    ...activated,
  },
  {
    name: 'one that does not exist cannot be rolled back to',
    event: { type: 'roll_back' },
    emits: ['policy_not_found'],
  },
]);

testUnhandled(policyMachine, [
  ['retiring a version that does not exist', undefined, { type: 'retire' }],
  ['retiring a version twice', retiredPolicy, { type: 'retire' }],
  ['creating the default over a retired version', retiredPolicy, firstRead],
]);

// Certificate revocation list [core-4-8], [core-4-15]

const version: Crl = {
  sequence: 3,
  crlId: 'crl-3',
  issuedAt: NOW - 24 * HOUR,
  nextUpdate: NOW,
  digest: 'd3',
};
const current = { value: 'current', context: version };
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
    name: 'a list that does not exist has lapsed, so that the first version is published',
    event: { type: 'lapse', at: NOW },
    emits: ['lapsed'],
  },
  {
    name: 'a list lapses when half its time is over',
    from: current,
    event: { type: 'lapse', at: NOW - 12 * HOUR },
    emits: ['lapsed'],
  },
  {
    name: 'a list stays current until then',
    from: current,
    event: { type: 'lapse', at: NOW - 12 * HOUR - 1 },
    emits: ['current'],
  },
  {
    name: 'a restore goes on with any higher number',
    from: current,
    event: { type: 'resume', version: { ...next, sequence: 1_000_003 } },
    emits: ['published'],
    to: { value: 'current', facts: { ...next, sequence: 1_000_003 } },
  },
  {
    name: 'a restore may begin with any number',
    event: { type: 'resume', version: { ...first, sequence: 1_000_000 } },
    emits: ['published'],
    to: { value: 'current', facts: { ...first, sequence: 1_000_000 } },
  },
]);

testUnhandled(crlMachine, [
  ['a restore that goes back', current, { type: 'resume', version: { ...next, sequence: 3 } }],
  ['naming a sequence twice', current, { type: 'publish', version: { ...next, sequence: 3 } }],
  ['going back', current, { type: 'publish', version: { ...next, sequence: 2 } }],
  ['leaving a sequence out', current, { type: 'publish', version: { ...next, sequence: 5 } }],
  ['beginning at 1', undefined, { type: 'publish', version: { ...first, sequence: 1 } }],
]);

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
/** What remains of it: older descriptors are refused as long as an accepted one is valid. */
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

// Membership attestation [service-states-attestation], [core-4-11], [core-g23]

const attestation: Attestation = {
  json: '{"attestation_id":"a"}',
  issuer: 'alpha',
  subject: 'agent-7',
  issuedAt: NOW - HOUR,
  revokedAt: null,
  revocationReason: null,
};
const attested = { value: 'active', context: attestation };
const notAttested = {
  value: 'revoked',
  context: { ...attestation, revokedAt: NOW - 1, revocationReason: 'first' },
};
const withdraw = { type: 'revoke', at: NOW, reason: 'second' } as const;

testTable(attestationMachine, [
  {
    name: 'issued, it is active',
    event: { type: 'issue', attestation },
    emits: ['issued'],
    to: { value: 'active', facts: attestation },
  },
  {
    name: 'revoked, the signed record stays as it is',
    from: attested,
    event: withdraw,
    emits: ['revoked'],
    to: { value: 'revoked', facts: { revokedAt: NOW, revocationReason: 'second' } },
  },
  {
    name: 'revoked again, time and reason stay those of the first revocation',
    from: notAttested,
    event: withdraw,
    emits: ['already_revoked'],
  },
  { name: 'an unknown one cannot be revoked', event: withdraw, emits: ['attestation_not_found'] },
]);

testUnhandled(attestationMachine, [
  ['issuing one twice', attested, { type: 'issue', attestation }],
  ['issuing one that is revoked', notAttested, { type: 'issue', attestation }],
]);

// Recognition policy [core-4-12]

const recognition: StoredRecognitionPolicy = { policyId: 'p-1', json: '{}', setAt: NOW - 1 };
const laterRecognition: StoredRecognitionPolicy = { policyId: 'p-2', json: '[]', setAt: NOW };

testTable(recognitionPolicyMachine, [
  {
    name: 'set for the first time, it is active',
    event: { type: 'set', policy: recognition },
    emits: ['set'],
    to: { value: 'active', facts: recognition },
  },
  {
    name: 'the one that was set last is active',
    from: { value: 'active', context: recognition },
    event: { type: 'set', policy: laterRecognition },
    emits: ['set'],
    to: { value: 'active', facts: laterRecognition },
  },
]);

// Recognition treaty [service-states-treaty], [core-4-13], [core-g23]

const treaty: Treaty = {
  json: '{"treaty_id":"t"}',
  issuer: 'alpha',
  subject: 'beta',
  subjectKeys: ['key'],
  issuedAt: NOW - HOUR,
  validFrom: '2026-03-01T09:00:00Z',
  expiresAt: NOW + HOUR,
  revokedAt: null,
  revocationReason: null,
};
const inForce = { value: 'active', context: treaty };
const ended = {
  value: 'revoked',
  context: { ...treaty, revokedAt: NOW - 1, revocationReason: 'first' },
};
const replace = { type: 'revoke', at: NOW, reason: 'replaced_by:t-2' } as const;

testTable(treatyMachine, [
  {
    name: 'issued, it is active',
    event: { type: 'issue', treaty },
    emits: ['issued'],
    to: { value: 'active', facts: treaty },
  },
  {
    name: 'revoked, it has ended',
    from: inForce,
    event: replace,
    emits: ['revoked'],
    to: { value: 'revoked', facts: { revokedAt: NOW, revocationReason: 'replaced_by:t-2' } },
  },
  {
    name: 'revoked again, the reason may change but not the time',
    from: ended,
    event: replace,
    emits: ['revoked'],
    to: { value: 'revoked', facts: { revocationReason: 'replaced_by:t-2' } },
  },
  {
    name: 'it can be revoked after it expired',
    from: inForce,
    event: { ...replace, at: NOW + 2 * HOUR },
    emits: ['revoked'],
    to: {
      value: 'revoked',
      facts: { revokedAt: NOW + 2 * HOUR, revocationReason: 'replaced_by:t-2' },
    },
  },
  { name: 'an unknown one cannot be revoked', event: replace, emits: ['treaty_not_found'] },
]);

testUnhandled(treatyMachine, [
  ['issuing one twice', inForce, { type: 'issue', treaty }],
  ['issuing one that has ended', ended, { type: 'issue', treaty }],
]);

// Imported revocation feeds [service-states-imported-feed], [core-4-14]

const feed: ImportedFeed = {
  issuer: 'beta',
  sequence: '9',
  feedId: 'f-9',
  revokedCount: 2,
  importedAt: NOW - 1,
};
const importedFeed = { value: 'imported', context: feed };
const newer = { ...feed, sequence: '10', feedId: 'f-10', importedAt: NOW };
const importOf = (sequence: string, signature = 'valid') => ({
  type: 'import',
  feed: { ...newer, sequence },
  signature,
});
const taken = (sequence: string) => ({ value: 'imported', facts: { ...newer, sequence } });
const HUGE = '18446744073709551616';

testTable(revocationFeedMachine, [
  ...['0', '1', HUGE].map((sequence) => ({
    name: `the first feed of an issuer may have sequence ${sequence}`,
    event: importOf(sequence),
    emits: ['imported'],
    to: taken(sequence),
  })),
  {
    name: 'a newer feed is imported; sequences are compared as numbers, not as text',
    from: importedFeed,
    event: importOf('10'),
    emits: ['imported'],
    to: taken('10'),
  },
  {
    name: 'a sequence may be larger than a number can hold',
    from: { value: 'imported', context: { ...feed, sequence: HUGE } },
    event: importOf('18446744073709551617'),
    emits: ['imported'],
    to: taken('18446744073709551617'),
  },
  ...['9', '8', '0'].map((sequence) => ({
    name: `sequence ${sequence} after 9 is stale, which is reported before its missing signature`,
    from: importedFeed,
    event: importOf(sequence, 'missing_signature'),
    emits: ['stale_sequence'],
  })),
  ...[undefined, importedFeed].flatMap((from): Row[] => [
    {
      name: `${from === undefined ? 'a first' : 'a newer'} feed without signature is refused`,
      ...(from && { from }),
      event: importOf('10', 'missing_signature'),
      emits: ['missing_feed_signature'],
    },
    {
      name: `${from === undefined ? 'a first' : 'a newer'} feed that does not verify is refused`,
      ...(from && { from }),
      event: importOf('10', 'invalid_signature'),
      emits: ['invalid_feed_signature'],
    },
  ]),
]);

const importedRevocation: ImportedRevocation = {
  issuer: 'beta',
  attestationId: 'a-7',
  feedId: 'f-9',
  sequence: '9',
  reason: null,
  revokedAt: NOW - 1,
};
const updated = { ...importedRevocation, feedId: 'f-10', sequence: '10', reason: 'key_compromise' };

const revocationImport: RevocationImport = {
  issuer: 'beta',
  feedId: 'f-9',
  sequence: '9',
  revokedAt: NOW,
  rows: ['[["a-1",null]]'],
};
const laterImport = { ...revocationImport, sequence: '11', rows: ['[["a-1","left"]]'] };

testTable(revocationImportMachine, [
  {
    name: 'the ids of an import are stored',
    event: { type: 'store', rows: revocationImport },
    emits: ['stored'],
    to: { value: 'stored', facts: revocationImport },
  },
  {
    name: 'a later import takes the place of one that it covers',
    from: { value: 'stored', context: revocationImport },
    event: { type: 'store', rows: laterImport },
    emits: ['stored'],
    to: { value: 'stored', facts: laterImport },
  },
]);

testTable(importedRevocationMachine, [
  {
    name: 'revoked by a feed',
    event: { type: 'revoke', revocation: importedRevocation },
    emits: ['revoked'],
    to: { value: 'revoked', facts: importedRevocation },
  },
  {
    name: 'a later feed updates what is known of it',
    from: { value: 'revoked', context: importedRevocation },
    event: { type: 'revoke', revocation: updated },
    emits: ['revoked'],
    to: { value: 'revoked', facts: updated },
  },
]);

// Our own revocation feed [core-4-14], [core-g24]

const ourFeed: SovereignFeed = {
  issuer: 'alpha',
  sequence: 3,
  feedId: 'f-3',
  issuedAt: NOW - 1,
  digest: 'd3',
};
const published = { value: 'published', context: ourFeed };
const nextFeed = { ...ourFeed, sequence: 4, feedId: 'f-4', issuedAt: NOW, digest: 'd4' };

testTable(sovereignFeedMachine, [
  {
    name: 'our own feed begins empty, with sequence 0',
    event: { type: 'publish', version: { ...ourFeed, sequence: 0 } },
    emits: ['published'],
    to: { value: 'published', facts: { ...ourFeed, sequence: 0 } },
  },
  {
    name: 'a feed that does not exist has lapsed',
    event: { type: 'lapse', at: NOW },
    emits: ['lapsed'],
  },
  {
    name: 'a feed lapses when it is half a day old',
    from: published,
    event: { type: 'lapse', at: ourFeed.issuedAt + 12 * HOUR },
    emits: ['lapsed'],
  },
  {
    name: 'a feed stays current until then',
    from: published,
    event: { type: 'lapse', at: ourFeed.issuedAt + 12 * HOUR - 1 },
    emits: ['current'],
  },
  {
    name: 'the first version that names a revocation has sequence 1',
    event: { type: 'publish', version: { ...ourFeed, sequence: 1 } },
    emits: ['published'],
    to: { value: 'published', facts: { ...ourFeed, sequence: 1 } },
  },
  {
    name: 'a version follows the one before it',
    from: published,
    event: { type: 'publish', version: nextFeed },
    emits: ['published'],
    to: { value: 'published', facts: nextFeed },
  },
  {
    name: 'a restore goes on with any higher number',
    from: published,
    event: { type: 'resume', version: { ...nextFeed, sequence: 1_000_003 } },
    emits: ['published'],
    to: { value: 'published', facts: { ...nextFeed, sequence: 1_000_003 } },
  },
  {
    name: 'a restore may begin with any number',
    event: { type: 'resume', version: { ...ourFeed, sequence: 1_000_000 } },
    emits: ['published'],
    to: { value: 'published', facts: { ...ourFeed, sequence: 1_000_000 } },
  },
]);

testUnhandled(sovereignFeedMachine, [
  ['naming a sequence twice', published, { type: 'publish', version: ourFeed }],
  ['going back', published, { type: 'publish', version: { ...ourFeed, sequence: 2 } }],
  ['leaving one out', published, { type: 'publish', version: { ...ourFeed, sequence: 5 } }],
  ['beginning at 2', undefined, { type: 'publish', version: { ...ourFeed, sequence: 2 } }],
]);

// Capability nullifier [trust-4-5]

const nullifier: Nullifier = {
  proofDigest: 'd1',
  commitmentId: 'c-1',
  nullifierId: 'n-1',
  issuedAt: NOW - 1,
  expiresAt: NOW + 59_999,
};
const nullified = { value: 'issued', context: nullifier };
const laterNullifier: Nullifier = { ...nullifier, nullifierId: 'n-2', issuedAt: NOW };
const nullify = { type: 'issue', nullifier, leafMatches: true } as const;
const nullifyLater = { ...nullify, nullifier: laterNullifier };
const usedUp = [{ refusal: 'nullifier_failed', reason: 'already_issued' }];

testTable(nullifierMachine, [
  {
    name: 'the first nullifier of a proof is issued',
    event: nullify,
    emits: ['issued'],
    to: { value: 'issued', facts: nullifier },
  },
  {
    name: 'a proof whose leaf is not that of its capability is refused, and not used up',
    event: { ...nullify, leafMatches: false },
    emits: [{ refusal: 'nullifier_failed', reason: 'leaf_hash_mismatch' }],
  },
  {
    name: 'a second one of the same proof is refused',
    from: nullified,
    event: nullifyLater,
    emits: usedUp,
  },
  {
    name: 'also when the first has expired',
    from: { value: 'issued', context: { ...nullifier, expiresAt: NOW - 1 } },
    event: nullifyLater,
    emits: usedUp,
  },
  {
    name: 'also for another content of the proof',
    from: nullified,
    event: { ...nullify, nullifier: { ...laterNullifier, proofDigest: 'd2', commitmentId: 'c-2' } },
    emits: usedUp,
  },
  {
    name: 'a repeated use is reported before a wrong leaf',
    from: nullified,
    event: { ...nullifyLater, leafMatches: false },
    emits: usedUp,
  },
]);

testUnhandled(nullifierMachine, [
  ['giving a proof back that was never used', undefined, { type: 'release' }],
  ['giving a used proof back', nullified, { type: 'release' }],
]);

// Node key [core-4-8]

const compromised = { value: 'compromised', context: { nodePublicKey: 'key', compromisedAt: NOW } };
const compromise = { type: 'compromise', key: { nodePublicKey: 'key', compromisedAt: NOW } };

testTable(nodeKeyMachine, [
  {
    name: 'a compromise is recorded',
    event: compromise,
    emits: ['compromised'],
    to: { value: 'compromised', facts: compromised.context },
  },
  {
    name: 'the first one stays as it was',
    from: compromised,
    event: { ...compromise, key: { nodePublicKey: 'key', compromisedAt: NOW + HOUR } },
    emits: ['already_compromised'],
  },
]);

testUnhandled(nodeKeyMachine, [['trusting it again', compromised, { type: 'restore' }]]);

// A revocation that a restore knows from a published list alone [backup-7]

const restoredRevocation = {
  list: 'crl',
  revokedId: 'c-1',
  issuer: '',
  revokedAt: NOW,
  reason: 'superseded',
  crlSequence: 1_000_003,
};

testTable(restoredRevocationMachine, [
  {
    name: 'a revocation comes back',
    event: { type: 'restore', revocation: restoredRevocation },
    emits: ['revoked'],
    to: { value: 'revoked', facts: restoredRevocation },
  },
  {
    name: 'the first one stays as it was',
    from: { value: 'revoked', context: restoredRevocation },
    event: { type: 'restore', revocation: { ...restoredRevocation, reason: 'other' } },
    emits: ['already_revoked'],
  },
]);

// Data-license policy [service-states-other]

testTable(licensePolicyMachine, [
  {
    name: 'the first policy is in force',
    event: { type: 'create', policy: { json: '{"policy_id":"p-1"}', validUntil: 1 } },
    emits: ['created'],
    to: { value: 'active', facts: { json: '{"policy_id":"p-1"}', validUntil: 1 } },
  },
  {
    name: 'another takes its place',
    from: { value: 'active', context: { json: '{"policy_id":"p-1"}', validUntil: 1 } },
    event: { type: 'create', policy: { json: '{"policy_id":"p-2"}', validUntil: 2 } },
    emits: ['created'],
    to: { value: 'active', facts: { json: '{"policy_id":"p-2"}', validUntil: 2 } },
  },
]);

testUnhandled(licensePolicyMachine, [
  ['withdrawing one that is not there', undefined, { type: 'revoke' }],
  [
    'withdrawing one',
    { value: 'active', context: { json: '{}', validUntil: 1 } },
    { type: 'revoke' },
  ],
]);

// Count of subjects removed by retention

testTable(webhookMachine, [
  {
    name: 'a new webhook begins after an event',
    event: { type: 'begin', after: 7 },
    emits: [],
    to: { value: 'posting', facts: { delivered: 7 } },
  },
  {
    name: 'it has taken the events up to another',
    from: { value: 'posting', context: { delivered: 7 } },
    event: { type: 'deliver', index: 9 },
    emits: [],
    to: { value: 'posting', facts: { delivered: 9 } },
  },
]);

testTable(removalCountMachine, [
  {
    name: 'the first removals are counted',
    event: { type: 'remove', count: 2 },
    emits: [],
    to: { value: 'counting', facts: { removed: 2 } },
  },
  {
    name: 'later ones are added',
    from: { value: 'counting', context: { removed: 2 } },
    event: { type: 'remove', count: 3 },
    emits: [],
    to: { value: 'counting', facts: { removed: 5 } },
  },
]);

// The tables are complete

test('every machine of the folder has a table here', async () => {
  const missing: string[] = [];
  const files = readdirSync(new URL('machines', PROJECT)).filter((name) => name.endsWith('.ts'));
  for (const file of files) {
    const exported = (await import(modulePath(`machines/${file}`))) as Record<string, unknown>;
    for (const [name, value] of Object.entries(exported)) {
      if (!(value instanceof StateMachine)) continue;
      if (!tested.has(value as unknown as AnyStateMachine)) missing.push(`${file} ${name}`);
    }
  }
  assert.deepEqual(missing, []);
});

for (const machine of tested) {
  test(`${machine.id}: every branch of every state has a row`, () => {
    const short: string[] = [];
    const states = (machine.config.states ?? {}) as Record<
      string,
      { on?: Record<string, unknown> }
    >;
    for (const [state, { on = {} }] of Object.entries(states)) {
      for (const [event, branches] of Object.entries(on)) {
        const name = `${machine.id} ${state} ${event}`;
        const needed = Array.isArray(branches) ? branches.length : 1;
        const found = rowsOf.get(name) ?? 0;
        if (found < needed) short.push(`${name}: ${found} rows for ${needed} branches`);
      }
    }
    assert.deepEqual(short, []);
  });
}

// Running machines

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

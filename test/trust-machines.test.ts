/** The state tables of policy, agent, attestation, treaty and feeds, row by row (spec, States and transitions). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AnyStateMachine } from 'xstate';
import {
  type AgentRegistration,
  agentRegistrationMachine,
} from '../machines/agent-registration.ts';
import { type Attestation, attestationMachine } from '../machines/attestation.ts';
import { type Policy, policyMachine } from '../machines/policy.ts';
import {
  recognitionPolicyMachine,
  type StoredRecognitionPolicy,
} from '../machines/recognition-policy.ts';
import { type Treaty, treatyMachine } from '../machines/recognition-treaty.ts';
import {
  type ImportedFeed,
  type ImportedRevocation,
  importedRevocationMachine,
  revocationFeedMachine,
} from '../machines/revocation-feed.ts';
import { type SovereignFeed, sovereignFeedMachine } from '../machines/sovereign-feed.ts';
import { type Resting, step } from '../machines/step.ts';
import { readPolicyManifest } from '../src/records/policy-manifest.ts';

interface Event {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** One row of a state table: what an event does to a subject that is in a state. */
interface Row {
  readonly name: string;
  readonly from?: Resting;
  readonly event: Event;
  /** What the machine emits; a refusal is written as its name. */
  readonly emits: readonly string[];
  /** The next state and all its facts; absent when the event leaves the subject as it was. */
  readonly to?: Resting;
}

const NOW = Date.UTC(2026, 2, 1, 10);
const HOUR = 3_600_000;

function testTable(machine: AnyStateMachine, rows: readonly Row[]): void {
  for (const { name, from, event, emits, to } of rows) {
    test(`${machine.id}: ${name}`, () => {
      const before = structuredClone(from);
      const { next, emitted, changed } = step(machine, from, event);
      assert.deepEqual(emitted.map(nameOf), emits);
      assert.deepEqual(from, before, 'the subject at rest is not written to');
      assert.equal(changed, to !== undefined);
      if (to === undefined) {
        assert.equal(next.value, from?.value ?? 'absent');
        if (from !== undefined) assert.deepEqual(next.context, from.context);
      } else {
        assert.deepEqual({ value: next.value, context: next.context }, to);
        assert.deepEqual(structuredClone(next.context), next.context, 'the context is plain data');
      }
    });
  }
}

function nameOf(emitted: { readonly type: string }): string {
  return 'refusal' in emitted ? String(emitted.refusal) : emitted.type;
}

/** Events that no state of the machine takes there: a mistake of the program, never of a client. */
function testUnhandled(
  machine: AnyStateMachine,
  cases: readonly (readonly [string, Resting | undefined, Event])[],
): void {
  for (const [name, from, event] of cases) {
    test(`${machine.id}: ${name} is a programming error and throws`, () => {
      assert.throws(() => step(machine, from, event), {
        message: `${machine.id} in state ${from?.value ?? 'absent'} does not take ${event.type}`,
      });
    });
  }
}

// Policy (spec, rows Policy; wire rules 4.10)

function manifestOf(policy_id: string) {
  const manifest = readPolicyManifest({
    policy_id,
    issued_at: '2026-03-01T10:00:00Z',
    issued_by: 'na',
    min_client_version: '0.1.0',
  });
  assert.ok(manifest !== null);
  return manifest;
}

const oldPolicy: Policy = { manifest: manifestOf('old'), createdAt: NOW - HOUR };
const newPolicy: Policy = { manifest: manifestOf('new'), createdAt: NOW };
const publish = { type: 'publish', at: NOW, manifest: newPolicy.manifest };
const firstRead = { ...publish, type: 'first_read' };
const activePolicy = { value: 'active', context: oldPolicy };
const retiredPolicy = { value: 'retired', context: oldPolicy };
const published = { value: 'active', context: newPolicy };

testTable(policyMachine, [
  {
    name: 'a published version is new and active',
    event: publish,
    emits: ['activated'],
    to: published,
  },
  {
    name: 'the first read of a network without policy makes the default',
    event: firstRead,
    emits: ['activated'],
    to: published,
  },
  {
    name: 'a rollback to a version that does not exist is refused',
    event: { type: 'roll_back' },
    emits: ['policy_not_found'],
  },
  {
    name: 'publishing the active version again replaces it',
    from: activePolicy,
    event: publish,
    emits: ['activated'],
    to: published,
  },
  {
    name: 'a later read makes nothing',
    from: activePolicy,
    event: firstRead,
    emits: ['activated'],
  },
  {
    name: 'a rollback to the active version changes nothing',
    from: activePolicy,
    event: { type: 'roll_back' },
    emits: ['activated'],
  },
  {
    name: 'the active version retires when another becomes active',
    from: activePolicy,
    event: { type: 'retire' },
    emits: ['retired'],
    to: retiredPolicy,
  },
  {
    name: 'publishing a retired version replaces and activates it',
    from: retiredPolicy,
    event: publish,
    emits: ['activated'],
    to: published,
  },
  {
    name: 'a rollback activates a retired version as it was',
    from: retiredPolicy,
    event: { type: 'roll_back' },
    emits: ['activated'],
    to: activePolicy,
  },
]);

testUnhandled(policyMachine, [
  ['retiring a version that does not exist', undefined, { type: 'retire' }],
  ['retiring a retired version', retiredPolicy, { type: 'retire' }],
  ['reading a retired version first', retiredPolicy, firstRead],
]);

// Agent registration (spec, rows Agent registration; wire rules 4.6)

const none: AgentRegistration = { json: '', capabilities: [], registeredAt: 0, expiresAt: 0 };
const registration: AgentRegistration = {
  json: '{"agent_id":"a"}',
  capabilities: ['llm:chat'],
  registeredAt: NOW - HOUR,
  expiresAt: NOW,
};
const refreshed: AgentRegistration = {
  json: '{"agent_id":"b"}',
  capabilities: [],
  registeredAt: NOW,
  expiresAt: NOW + HOUR,
};
const register = {
  type: 'register',
  registration: refreshed,
  hasActiveCertificate: true,
  keyCompromised: false,
  signatureValid: true,
};
const remove = { type: 'remove', signatureValid: true, replayed: false };
const absent = undefined;
const registered = { value: 'registered', context: registration };
const removed = { value: 'removed', context: none };
const evicted = { value: 'evicted', context: none };
const anew = { value: 'registered', context: refreshed };

const PLACES: readonly (readonly [string, Resting | undefined])[] = [
  ['that does not exist', absent],
  ['that exists', registered],
  ['that was removed', removed],
  ['that was evicted', evicted],
];

for (const [name, from] of PLACES) {
  const at = from === undefined ? {} : { from };
  testTable(agentRegistrationMachine, [
    {
      name: `a registration ${name} is made, or refreshed`,
      ...at,
      event: register,
      emits: ['registered'],
      to: anew,
    },
    {
      name: `a registration ${name} needs an active certificate before anything else`,
      ...at,
      event: {
        ...register,
        hasActiveCertificate: false,
        keyCompromised: true,
        signatureValid: false,
      },
      emits: ['node_has_no_active_certificate'],
    },
    {
      name: `a registration ${name} is refused to a compromised key before its signature is judged`,
      ...at,
      event: { ...register, keyCompromised: true, signatureValid: false },
      emits: ['node_key_revoked'],
    },
    {
      name: `a registration ${name} is refused to a signature that fails`,
      ...at,
      event: { ...register, signatureValid: false },
      emits: ['invalid_agent_signature'],
    },
    {
      name: `removing one ${name} is refused to a proof that fails, before anything else`,
      ...at,
      event: { ...remove, signatureValid: false, replayed: true },
      emits: ['invalid_agent_signature'],
    },
  ]);
  if (from === registered) continue;
  testTable(agentRegistrationMachine, [
    {
      name: `removing one ${name} finds nothing`,
      ...at,
      event: remove,
      emits: ['agent_not_registered'],
    },
    {
      name: `removing one ${name} finds nothing before it looks for a replay`,
      ...at,
      event: { ...remove, replayed: true },
      emits: ['agent_not_registered'],
    },
  ]);
}

testTable(agentRegistrationMachine, [
  {
    name: 'a valid proof removes a registration',
    from: registered,
    event: remove,
    emits: ['removed'],
    to: removed,
  },
  {
    name: 'an envelope used before does not remove a later registration',
    from: registered,
    event: { ...remove, replayed: true },
    emits: ['invalid_agent_signature'],
  },
  {
    name: 'it is evicted at the instant of its expiry',
    from: registered,
    event: { type: 'evict', at: NOW },
    emits: ['evicted'],
    to: evicted,
  },
  {
    name: 'it is not evicted a moment before',
    from: registered,
    event: { type: 'evict', at: NOW - 1 },
    emits: ['current'],
  },
  {
    name: 'it goes with the certificate of its node',
    from: registered,
    event: { type: 'certificate_revoked' },
    emits: ['evicted'],
    to: evicted,
  },
]);

testUnhandled(agentRegistrationMachine, [
  ['evicting one that does not exist', absent, { type: 'evict', at: NOW }],
  ['evicting one that was removed', removed, { type: 'evict', at: NOW }],
  ['revoking the certificate of one that was evicted', evicted, { type: 'certificate_revoked' }],
]);

// Attestation (spec, row Attestation; wire rules 4.11)

const attestation: Attestation = {
  json: '{}',
  issuer: 'alpha',
  subject: 'agent-7',
  issuedAt: NOW - HOUR,
  revokedAt: null,
  revocationReason: null,
};
const activeAttestation = { value: 'active', context: attestation };
const revokedAttestation = {
  value: 'revoked',
  context: { ...attestation, revokedAt: NOW - 1, revocationReason: 'first' },
};
const revoke = { type: 'revoke', at: NOW, reason: 'left' };

testTable(attestationMachine, [
  {
    name: 'an issued attestation is active',
    event: { type: 'issue', attestation },
    emits: ['issued'],
    to: activeAttestation,
  },
  {
    name: 'revoking one that does not exist is refused',
    event: revoke,
    emits: ['attestation_not_found'],
  },
  {
    name: 'revoking it keeps time and reason, and not the record',
    from: activeAttestation,
    event: revoke,
    emits: ['revoked'],
    to: {
      value: 'revoked',
      context: { ...attestation, revokedAt: NOW, revocationReason: 'left' },
    },
  },
  {
    name: 'the first revocation wins',
    from: revokedAttestation,
    event: revoke,
    emits: ['already_revoked'],
  },
]);

testUnhandled(attestationMachine, [
  ['issuing an active one', activeAttestation, { type: 'issue', attestation }],
  ['issuing a revoked one', revokedAttestation, { type: 'issue', attestation }],
]);

// Recognition treaty (spec, row Recognition treaty; wire rules 4.13)

const treaty: Treaty = {
  json: '{}',
  issuer: 'alpha',
  subject: 'beta',
  subjectKeys: ['key'],
  issuedAt: NOW - HOUR,
  validFrom: '2026-03-01T09:00:00Z',
  expiresAt: NOW - 1,
  revokedAt: null,
  revocationReason: null,
};
const activeTreaty = { value: 'active', context: treaty };
const revokedTreaty = {
  value: 'revoked',
  context: { ...treaty, revokedAt: NOW - 1, revocationReason: 'ended' },
};

testTable(treatyMachine, [
  {
    name: 'an issued treaty is active',
    event: { type: 'issue', treaty },
    emits: ['issued'],
    to: activeTreaty,
  },
  {
    name: 'revoking one that does not exist is refused',
    event: revoke,
    emits: ['treaty_not_found'],
  },
  {
    name: 'revoking it keeps time and reason, whether or not it has expired',
    from: activeTreaty,
    event: revoke,
    emits: ['revoked'],
    to: { value: 'revoked', context: { ...treaty, revokedAt: NOW, revocationReason: 'left' } },
  },
  {
    name: 'a repeat may name another reason, and never moves the time',
    from: revokedTreaty,
    event: revoke,
    emits: ['revoked'],
    to: { value: 'revoked', context: { ...revokedTreaty.context, revocationReason: 'left' } },
  },
]);

testUnhandled(treatyMachine, [
  ['issuing an active one', activeTreaty, { type: 'issue', treaty }],
  ['issuing a revoked one', revokedTreaty, { type: 'issue', treaty }],
]);

// Recognition policy (wire rules 4.12)

const policyOne: StoredRecognitionPolicy = { policyId: 'one', json: '{"a":1}', setAt: NOW - 1 };
const policyTwo: StoredRecognitionPolicy = { policyId: 'two', json: '{}', setAt: NOW };

testTable(recognitionPolicyMachine, [
  {
    name: 'the first policy that is set is active',
    event: { type: 'set', policy: policyTwo },
    emits: ['set'],
    to: { value: 'active', context: policyTwo },
  },
  {
    name: 'a policy takes the place of the one before',
    from: { value: 'active', context: policyOne },
    event: { type: 'set', policy: policyTwo },
    emits: ['set'],
    to: { value: 'active', context: policyTwo },
  },
]);

// Revocation feed, imported (spec, rows Revocation feed; wire rules 4.14)

const feed = (sequence: string): ImportedFeed => ({
  issuer: 'beta',
  sequence,
  feedId: `feed-${sequence}`,
  revokedCount: 2,
  importedAt: NOW,
});
const importing = (sequence: string, signature = 'valid') => ({
  type: 'import',
  feed: feed(sequence),
  signature,
});
const imported = (sequence: string) => ({ value: 'imported', context: feed(sequence) });

testTable(revocationFeedMachine, [
  {
    name: 'the first feed of an issuer is imported, whatever its sequence',
    event: importing('0'),
    emits: ['imported'],
    to: imported('0'),
  },
  {
    name: 'the first feed without signature is refused',
    event: importing('1', 'missing_signature'),
    emits: ['missing_feed_signature'],
  },
  {
    name: 'the first feed whose signature fails is refused',
    event: importing('1', 'invalid_signature'),
    emits: ['invalid_feed_signature'],
  },
  ...(['2', '10', '9007199254740993', `1${'0'.repeat(60)}`] as const).map((sequence) => ({
    name: `sequence ${sequence.slice(0, 20)} follows sequence 1`,
    from: imported('1'),
    event: importing(sequence),
    emits: ['imported'],
    to: imported(sequence),
  })),
  ...(
    [
      ['1', '1'],
      ['0', '1'],
      ['9', '10'],
      ['9007199254740992', '9007199254740993'],
      ['9007199254740993', '9007199254740993'],
    ] as const
  ).map(([sequence, stored]) => ({
    name: `sequence ${sequence} after sequence ${stored} is stale`,
    from: imported(stored),
    event: importing(sequence),
    emits: ['stale_sequence'],
  })),
  {
    name: 'one more than a stored sequence is newer, beyond what a number can hold',
    from: imported('9007199254740992'),
    event: importing('9007199254740993'),
    emits: ['imported'],
    to: imported('9007199254740993'),
  },
  {
    name: 'a stale sequence is refused before the missing signature',
    from: imported('1'),
    event: importing('1', 'missing_signature'),
    emits: ['stale_sequence'],
  },
  {
    name: 'a stale sequence is refused before the failing signature',
    from: imported('1'),
    event: importing('1', 'invalid_signature'),
    emits: ['stale_sequence'],
  },
  {
    name: 'a newer feed without signature is refused',
    from: imported('1'),
    event: importing('2', 'missing_signature'),
    emits: ['missing_feed_signature'],
  },
  {
    name: 'a newer feed whose signature fails is refused',
    from: imported('1'),
    event: importing('2', 'invalid_signature'),
    emits: ['invalid_feed_signature'],
  },
]);

const revocation = (feedId: string): ImportedRevocation => ({
  issuer: 'beta',
  attestationId: 'a',
  feedId,
  sequence: '1',
  reason: feedId === 'feed-1' ? 'left' : null,
  revokedAt: NOW,
});

testTable(importedRevocationMachine, [
  {
    name: 'an imported id is revoked',
    event: { type: 'revoke', revocation: revocation('feed-1') },
    emits: ['revoked'],
    to: { value: 'revoked', context: revocation('feed-1') },
  },
  {
    name: 'a later feed updates what is known of it',
    from: { value: 'revoked', context: revocation('feed-1') },
    event: { type: 'revoke', revocation: revocation('feed-2') },
    emits: ['revoked'],
    to: { value: 'revoked', context: revocation('feed-2') },
  },
]);

// Our own feed (wire rules 4.14, G24)

const version = (sequence: number): SovereignFeed => ({
  issuer: 'alpha',
  sequence,
  feedId: `feed-${sequence}`,
  issuedAt: NOW,
  digest: 'd',
});
const publishing = (sequence: number) => ({ type: 'publish', version: version(sequence) });
const current = (sequence: number) => ({ value: 'published', context: version(sequence) });

testTable(sovereignFeedMachine, [
  {
    name: 'the first revocation publishes version 1',
    event: publishing(1),
    emits: ['published'],
    to: current(1),
  },
  {
    name: 'a version follows the one before',
    from: current(7),
    event: publishing(8),
    emits: ['published'],
    to: current(8),
  },
]);

testUnhandled(sovereignFeedMachine, [
  ['beginning with version 0', undefined, publishing(0)],
  ['beginning with version 2', undefined, publishing(2)],
  ['publishing a version again', current(7), publishing(7)],
  ['going back', current(7), publishing(6)],
  ['skipping a version', current(7), publishing(9)],
]);

import {
  licensePolicyMachine,
  recognitionPolicyMachine,
  type StoredRecognitionPolicy,
} from '../../machines/one-record.ts';
import { policyMachine } from '../../machines/policy.ts';
import { readPolicyManifest } from '../../src/protocol/records/policy-manifest.ts';
import { NOW, testTable, testUnhandled } from '../support/state-tables.ts';

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

// Recognition policy [core-4-12]

const recognition: StoredRecognitionPolicy = { policyId: 'p-1', json: '{}', setAt: NOW - 1 };
const laterRecognition: StoredRecognitionPolicy = { policyId: 'p-2', json: '[]', setAt: NOW };

testTable(recognitionPolicyMachine, [
  {
    name: 'set for the first time, it is active',
    event: { type: 'record', record: recognition },
    emits: ['recorded'],
    to: { value: 'active', facts: recognition },
  },
  {
    name: 'the one that was set last is active',
    from: { value: 'active', context: recognition },
    event: { type: 'record', record: laterRecognition },
    emits: ['recorded'],
    to: { value: 'active', facts: laterRecognition },
  },
]);

// Data-license policy [service-states-other]

testTable(licensePolicyMachine, [
  {
    name: 'the first policy is in force',
    event: { type: 'record', record: { json: '{"policy_id":"p-1"}', validUntil: 1 } },
    emits: ['recorded'],
    to: { value: 'active', facts: { json: '{"policy_id":"p-1"}', validUntil: 1 } },
  },
  {
    name: 'another takes its place',
    from: { value: 'active', context: { json: '{"policy_id":"p-1"}', validUntil: 1 } },
    event: { type: 'record', record: { json: '{"policy_id":"p-2"}', validUntil: 2 } },
    emits: ['recorded'],
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

import {
  licensePolicyMachine,
  recognitionPolicyMachine,
  type StoredRecognitionPolicy,
} from '../../machines/one-record.ts';
import { policyMachine } from '../../machines/policy.ts';
import { readPolicyManifest } from '../../src/protocol/records/policy-manifest.ts';
import { absent, inEach, NOW, testTable, testUnhandled } from '../support/state-tables.ts';

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
const retire = { type: 'retire' };
const rollBack = { type: 'roll_back' };
const isDefault = { active: { manifest, createdAt: NOW } };
const isAnother = { active: { manifest: another, createdAt: NOW } };

testTable(policyMachine, [
  ['the first read of a network creates the default', absent, firstRead, 'activated', isDefault],
  ['a later read leaves it', activePolicy, { ...firstRead, manifest: another }, 'activated'],
  ...inEach(
    [absent, activePolicy, retiredPolicy],
    ['published, that content is active', publishPolicy, 'activated', isAnother],
  ),
  ['another version becomes active', activePolicy, retire, 'retired', { retired: {} }],
  ['rolled back to, it is as it was', retiredPolicy, rollBack, 'activated', { active: {} }],
  ['rolled back to while active', activePolicy, rollBack, 'activated'],
  ['one that does not exist cannot be rolled back to', absent, rollBack, 'policy_not_found'],
]);

testUnhandled(policyMachine, [
  ['retiring a version that does not exist', absent, retire],
  ['retiring a version twice', retiredPolicy, retire],
  ['creating the default over a retired version', retiredPolicy, firstRead],
]);

const record = (content: object) => ({ type: 'record', record: content });

// Recognition policy [core-4-12]

const recognition: StoredRecognitionPolicy = { policyId: 'p-1', json: '{}', setAt: NOW - 1 };
const laterOne: StoredRecognitionPolicy = { policyId: 'p-2', json: '[]', setAt: NOW };
const recognizing = { value: 'active', context: recognition };

testTable(recognitionPolicyMachine, [
  ['set for the first time', absent, record(recognition), 'recorded', { active: recognition }],
  ['the last one is active', recognizing, record(laterOne), 'recorded', { active: laterOne }],
]);

// Data-license policy [service-states-other]

const license = { json: '{"policy_id":"p-1"}', validUntil: 1 };
const laterLicense = { json: '{"policy_id":"p-2"}', validUntil: 2 };
const licensed = { value: 'active', context: license };

testTable(licensePolicyMachine, [
  ['the first policy is in force', absent, record(license), 'recorded', { active: license }],
  ['another takes its place', licensed, record(laterLicense), 'recorded', { active: laterLicense }],
]);

testUnhandled(licensePolicyMachine, [
  ['withdrawing one that is not there', absent, { type: 'revoke' }],
  ['withdrawing one', licensed, { type: 'revoke' }],
]);

import { nodeKeyMachine, restoredRevocationMachine } from '../../machines/one-record.ts';
import { type Crl, crlMachine } from '../../machines/signed-sequence.ts';
import { absent, HOUR, NOW, testTable, testUnhandled } from '../support/state-tables.ts';

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

const publish = (published: Crl) => ({ type: 'publish', version: published });
const resume = (published: Crl) => ({ type: 'resume', version: published });
const lapse = (at: number) => ({ type: 'lapse', at });
const far: Crl = { ...next, sequence: 1_000_003 };
const any: Crl = { ...first, sequence: 1_000_000 };

testTable(crlMachine, [
  ['the first version has sequence 0', absent, publish(first), 'published', { current: first }],
  ['a version follows the one before it', current, publish(next), 'published', { current: next }],
  ['without a list, the first version is published', absent, lapse(NOW), 'lapsed'],
  ['a list lapses when half its time is over', current, lapse(NOW - 12 * HOUR), 'lapsed'],
  ['a list stays current until then', current, lapse(NOW - 12 * HOUR - 1), 'current'],
  // The clock was ahead.
  ['dated more than a second ahead it lapses', current, lapse(NOW - 24 * HOUR - 1001), 'lapsed'],
  ['clocks may differ by a second', current, lapse(NOW - 24 * HOUR - 1000), 'current'],
  ['a restore goes on with any higher number', current, resume(far), 'published', { current: far }],
  ['a restore may begin with any number', absent, resume(any), 'published', { current: any }],
]);

testUnhandled(crlMachine, [
  ['a restore that goes back', current, resume({ ...next, sequence: 3 })],
  ['naming a sequence twice', current, publish({ ...next, sequence: 3 })],
  ['going back', current, publish({ ...next, sequence: 2 })],
  ['leaving a sequence out', current, publish({ ...next, sequence: 5 })],
  ['beginning at 1', absent, publish({ ...first, sequence: 1 })],
]);

const record = (content: object) => ({ type: 'record', record: content });

// Node key [core-4-8]

const compromise = { nodePublicKey: 'key', compromisedAt: NOW };
const later = { nodePublicKey: 'key', compromisedAt: NOW + HOUR };
const compromised = { value: 'compromised', context: compromise };

testTable(nodeKeyMachine, [
  ['a compromise', absent, record(compromise), 'recorded', { compromised: compromise }],
  ['the first one stays as it was', compromised, record(later), 'already_recorded'],
]);

testUnhandled(nodeKeyMachine, [['trusting it again', compromised, { type: 'restore' }]]);

// A revocation that a restore knows only from a published list [backup-7]

const fromList = {
  list: 'crl',
  revokedId: 'c-1',
  issuer: '',
  revokedAt: NOW,
  reason: 'superseded',
  crlSequence: 1_000_003,
};
const restored = { value: 'revoked', context: fromList };

testTable(restoredRevocationMachine, [
  ['a revocation comes back', absent, record(fromList), 'recorded', { revoked: fromList }],
  ['the first stays', restored, record({ ...fromList, reason: 'other' }), 'already_recorded'],
]);

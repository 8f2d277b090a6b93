import { nodeKeyMachine, restoredRevocationMachine } from '../../machines/one-record.ts';
import { type Crl, crlMachine } from '../../machines/signed-sequence.ts';
import { HOUR, NOW, testTable, testUnhandled } from '../support/state-tables.ts';

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
    name: 'a list that is dated more than a second ahead lapses, because the clock was ahead',
    from: current,
    event: { type: 'lapse', at: NOW - 24 * HOUR - 1001 },
    emits: ['lapsed'],
  },
  {
    name: 'a list stays current if clocks differ by no more than a second',
    from: current,
    event: { type: 'lapse', at: NOW - 24 * HOUR - 1000 },
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

// Node key [core-4-8]

const compromised = {
  value: 'compromised',
  context: { nodePublicKey: 'key', compromisedAt: NOW },
};
const compromise = { type: 'record', record: { nodePublicKey: 'key', compromisedAt: NOW } };

testTable(nodeKeyMachine, [
  {
    name: 'a compromise is recorded',
    event: compromise,
    emits: ['recorded'],
    to: { value: 'compromised', facts: compromised.context },
  },
  {
    name: 'the first one stays as it was',
    from: compromised,
    event: { ...compromise, record: { nodePublicKey: 'key', compromisedAt: NOW + HOUR } },
    emits: ['already_recorded'],
  },
]);

testUnhandled(nodeKeyMachine, [['trusting it again', compromised, { type: 'restore' }]]);

// A revocation that a restore knows only from a published list [backup-7]

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
    event: { type: 'record', record: restoredRevocation },
    emits: ['recorded'],
    to: { value: 'revoked', facts: restoredRevocation },
  },
  {
    name: 'the first one stays as it was',
    from: { value: 'revoked', context: restoredRevocation },
    event: { type: 'record', record: { ...restoredRevocation, reason: 'other' } },
    emits: ['already_recorded'],
  },
]);

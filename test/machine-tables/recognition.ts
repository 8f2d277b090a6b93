import { type Attestation, attestationMachine } from '../../machines/attestation.ts';
import { type Treaty, treatyMachine } from '../../machines/recognition-treaty.ts';
import {
  type ImportedFeed,
  type RevocationImport,
  revocationFeedMachine,
  revocationImportMachine,
} from '../../machines/revocation-feed.ts';
import { type SovereignFeed, sovereignFeedMachine } from '../../machines/signed-sequence.ts';
import { HOUR, NOW, type Row, testTable, testUnhandled } from '../support/state-tables.ts';

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
  followed: [],
};
const inForce = { value: 'active', context: treaty };
const ended = {
  value: 'revoked',
  context: { ...treaty, revokedAt: NOW - 1, revocationReason: 'first' },
};
const renew = { type: 'renew', at: NOW, successorId: 't-2' } as const;
const setEndpoint = { type: 'setEndpoint', endpoint: 'https://na.beta.example' } as const;
const replace = { type: 'revoke', at: NOW, reason: 'replaced_by:t-2' } as const;
const follow = {
  type: 'follow',
  at: NOW,
  successorId: 't-2',
  problem: null,
  isNews: true,
} as const;

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
  {
    name: 'renewed, also after it expired, it has ended',
    from: inForce,
    event: { ...renew, at: NOW + 2 * HOUR },
    emits: ['replaced'],
    to: {
      value: 'revoked',
      facts: { revokedAt: NOW + 2 * HOUR, revocationReason: 'renewed_by:t-2' },
    },
  },
  {
    name: 'one that has ended is not renewed',
    from: ended,
    event: renew,
    emits: ['treaty_revoked'],
  },
  { name: 'an unknown one is not renewed', event: renew, emits: ['treaty_not_found'] },
  {
    name: 'its subject can get an address, and another one',
    from: { value: 'active', context: { ...treaty, endpoint: 'https://old.example' } },
    event: setEndpoint,
    emits: ['endpoint_set'],
    to: { value: 'active', facts: { endpoint: 'https://na.beta.example' } },
  },
  {
    name: 'one that has ended gets no address',
    from: ended,
    event: setEndpoint,
    emits: ['treaty_revoked'],
  },
  { name: 'an unknown one gets no address', event: setEndpoint, emits: ['treaty_not_found'] },
  {
    name: 'it is replaced when its subject has another key',
    from: inForce,
    event: follow,
    emits: ['replaced'],
    to: { value: 'revoked', facts: { revokedAt: NOW, revocationReason: 'replaced_by:t-2' } },
  },
  {
    name: 'it can follow in its last second',
    from: inForce,
    event: { ...follow, at: NOW + HOUR - 1000 },
    emits: ['replaced'],
    to: {
      value: 'revoked',
      facts: { revokedAt: NOW + HOUR - 1000, revocationReason: 'replaced_by:t-2' },
    },
  },
  {
    name: 'one that has expired follows nothing, whatever the chain',
    from: inForce,
    event: { ...follow, at: NOW + HOUR - 999, problem: 'fork', isNews: false },
    emits: ['treaty_expired'],
  },
  {
    name: 'a chain that cannot be followed changes nothing, even if it would be news',
    from: inForce,
    event: { ...follow, problem: 'unknown_key' },
    emits: ['chain_rejected'],
  },
  {
    name: 'a chain without news changes nothing',
    from: inForce,
    event: { ...follow, isNews: false },
    emits: ['nothing_to_follow'],
  },
  {
    name: 'one that has ended follows nothing',
    from: ended,
    event: follow,
    emits: ['treaty_revoked'],
  },
  { name: 'an unknown one follows nothing', event: follow, emits: ['treaty_not_found'] },
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
    event: { type: 'record', record: revocationImport },
    emits: ['recorded'],
    to: { value: 'stored', facts: revocationImport },
  },
  {
    name: 'a later import takes the place of one that it covers',
    from: { value: 'stored', context: revocationImport },
    event: { type: 'record', record: laterImport },
    emits: ['recorded'],
    to: { value: 'stored', facts: laterImport },
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

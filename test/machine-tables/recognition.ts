import { type Attestation, attestationMachine } from '../../machines/attestation.ts';
import { type Treaty, treatyMachine } from '../../machines/recognition-treaty.ts';
import {
  type ImportedFeed,
  type RevocationImport,
  revocationFeedMachine,
  revocationImportMachine,
} from '../../machines/revocation-feed.ts';
import { type SovereignFeed, sovereignFeedMachine } from '../../machines/signed-sequence.ts';
import { absent, HOUR, inEach, NOW, testTable, testUnhandled } from '../support/state-tables.ts';

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
const issue = { type: 'issue', attestation };
const withdraw = { type: 'revoke', at: NOW, reason: 'second' } as const;
const withdrawn = { revoked: { revokedAt: NOW, revocationReason: 'second' } };

testTable(attestationMachine, [
  ['issued, it is active', absent, issue, 'issued', { active: attestation }],
  ['revoked, the signed record stays as it is', attested, withdraw, 'revoked', withdrawn],
  ['revoked again, time and reason stay', notAttested, withdraw, 'already_revoked'],
  ['an unknown one cannot be revoked', absent, withdraw, 'attestation_not_found'],
]);

testUnhandled(attestationMachine, [
  ['issuing one twice', attested, issue],
  ['issuing one that is revoked', notAttested, issue],
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
const follow = { type: 'follow', at: NOW, successorId: 't-2', problem: null, isNews: true };

const LATE = NOW + 2 * HOUR;
const LAST = NOW + HOUR - 1000;
const withEndpoint = { value: 'active', context: { ...treaty, endpoint: 'https://old.example' } };
const named = { active: { endpoint: 'https://na.beta.example' } };
const revokedBy = (reason: string, revokedAt: number) => {
  return { revoked: { revokedAt, revocationReason: reason } };
};
const isReplaced = (at: number) => revokedBy('replaced_by:t-2', at);
const noNews = { ...follow, isNews: false };
const renewLate = { ...renew, at: LATE };
const isRenewed = revokedBy('renewed_by:t-2', LATE);
const hasOtherReason = { revoked: { revocationReason: 'replaced_by:t-2' } };
const followBad = { ...follow, problem: 'unknown_key' };
const expired = { ...noNews, at: LAST + 1, problem: 'fork' };

testTable(treatyMachine, [
  ['issued, it is active', absent, { type: 'issue', treaty }, 'issued', { active: treaty }],
  ['revoked, it has ended', inForce, replace, 'revoked', isReplaced(NOW)],
  ['revoked again, the time stays', ended, replace, 'revoked', hasOtherReason],
  ['also after it expired', inForce, { ...replace, at: LATE }, 'revoked', isReplaced(LATE)],
  ['an unknown one cannot be revoked', absent, replace, 'treaty_not_found'],
  ['renewed, also after it expired, it has ended', inForce, renewLate, 'replaced', isRenewed],
  ['one that has ended is not renewed', ended, renew, 'treaty_revoked'],
  ['an unknown one is not renewed', absent, renew, 'treaty_not_found'],
  ['its subject can get another address', withEndpoint, setEndpoint, 'endpoint_set', named],
  ['one that has ended gets no address', ended, setEndpoint, 'treaty_revoked'],
  ['an unknown one gets no address', absent, setEndpoint, 'treaty_not_found'],
  ['replaced when its subject has another key', inForce, follow, 'replaced', isReplaced(NOW)],
  ['also in its last second', inForce, { ...follow, at: LAST }, 'replaced', isReplaced(LAST)],
  ['one that has expired follows nothing, whatever the chain', inForce, expired, 'treaty_expired'],
  ['a bad chain changes nothing', inForce, followBad, 'chain_rejected'],
  ['a chain without news changes nothing', inForce, noNews, 'nothing_to_follow'],
  ['one that has ended follows nothing', ended, follow, 'treaty_revoked'],
  ['an unknown one follows nothing', absent, follow, 'treaty_not_found'],
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
const taken = (sequence: string) => ({ imported: { ...newer, sequence } });
const HUGE = '18446744073709551616';
const HUGER = '18446744073709551617';
const huge = { value: 'imported', context: { ...feed, sequence: HUGE } };
const unsigned = importOf('10', 'missing_signature');
const forged = importOf('10', 'invalid_signature');

testTable(revocationFeedMachine, [
  ['the first feed may be 0', absent, importOf('0'), 'imported', taken('0')],
  ['the first feed may be 1', absent, importOf('1'), 'imported', taken('1')],
  ['the first feed may be a huge one', absent, importOf(HUGE), 'imported', taken(HUGE)],
  ['sequences are compared as numbers', importedFeed, importOf('10'), 'imported', taken('10')],
  ['a sequence may exceed any number', huge, importOf(HUGER), 'imported', taken(HUGER)],
  // That is reported before the missing signature.
  ['9 after 9 is stale', importedFeed, importOf('9', 'missing_signature'), 'stale_sequence'],
  ['8 after 9 is stale', importedFeed, importOf('8', 'missing_signature'), 'stale_sequence'],
  ['0 after 9 is stale', importedFeed, importOf('0', 'missing_signature'), 'stale_sequence'],
  ...inEach(
    [absent, importedFeed],
    ['a feed without signature is refused', unsigned, 'missing_feed_signature'],
    ['a feed that does not verify is refused', forged, 'invalid_feed_signature'],
  ),
]);

const revocationImport: RevocationImport = {
  issuer: 'beta',
  feedId: 'f-9',
  sequence: '9',
  revokedAt: NOW,
  rows: ['[["a-1",null]]'],
};
const laterImport = { ...revocationImport, sequence: '11', rows: ['[["a-1","left"]]'] };

const record = (content: RevocationImport) => ({ type: 'record', record: content });
const stored = { value: 'stored', context: revocationImport };

testTable(revocationImportMachine, [
  ['an import', absent, record(revocationImport), 'recorded', { stored: revocationImport }],
  ['a later one covers it', stored, record(laterImport), 'recorded', { stored: laterImport }],
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

const publish = (version: SovereignFeed) => ({ type: 'publish', version });
const resume = (version: SovereignFeed) => ({ type: 'resume', version });
const lapse = (at: number) => ({ type: 'lapse', at });
const numbered = (sequence: number) => ({ ...ourFeed, sequence });
const is = (version: SovereignFeed) => ({ published: version });
const any = numbered(1_000_000);
const far = { ...nextFeed, sequence: 1_000_003 };
const half = ourFeed.issuedAt + 12 * HOUR;

testTable(sovereignFeedMachine, [
  ['it begins empty with 0', absent, publish(numbered(0)), 'published', is(numbered(0))],
  ['a feed that does not exist has lapsed', absent, lapse(NOW), 'lapsed'],
  ['a feed lapses when it is half a day old', published, lapse(half), 'lapsed'],
  ['a feed stays current until then', published, lapse(half - 1), 'current'],
  ['the first revocation has 1', absent, publish(numbered(1)), 'published', is(numbered(1))],
  ['a version follows the one before it', published, publish(nextFeed), 'published', is(nextFeed)],
  ['a restore goes on with any higher number', published, resume(far), 'published', is(far)],
  ['a restore may begin with any number', absent, resume(any), 'published', is(any)],
]);

testUnhandled(sovereignFeedMachine, [
  ['naming a sequence twice', published, publish(ourFeed)],
  ['going back', published, publish(numbered(2))],
  ['leaving one out', published, publish(numbered(5))],
  ['beginning at 2', absent, publish(numbered(2))],
]);

import {
  type Certificate,
  certificateMachine,
  MAX_LIVE_CERTIFICATES,
  MAX_UNEXPIRED_CERTIFICATES,
  UNTOUCHED,
} from '../../machines/certificate.ts';
import {
  absent,
  HOUR,
  inEach,
  NOW,
  type Row,
  testTable,
  testUnhandled,
} from '../support/state-tables.ts';

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
export const issued = { value: 'issued', context: certificate };
const since = { ...certificate, renewedAt: NOW - 60_000 };
const renewed = { value: 'renewed', context: { ...since, supersededFrom: null } };
const superseded = { value: 'renewed', context: { ...since, supersededFrom: NOW } };
const formerly = 'cessation_of_operation';
const formerRevocation = { revokedAt: NOW - 1, revocationReason: formerly, crlSequence: 3 };
const revoked = { value: 'revoked', context: { ...certificate, ...formerRevocation } };
const proven = { at: NOW, nodePublicKey: 'key-1', keyCompromised: false, proof: 'valid' } as const;
export const beat = { type: 'heartbeat', ...proven } as const;
const renew = {
  type: 'renew',
  ...proven,
  roles: null,
  supersededFrom: null,
  liveCertificates: MAX_LIVE_CERTIFICATES,
  unexpiredCertificates: MAX_UNEXPIRED_CERTIFICATES - 1,
} as const;
export const revoke = { type: 'revoke', at: NOW, reason: 'key_compromise', crlSequence: 4 };
const isRevoked = { revokedAt: NOW, revocationReason: 'key_compromise', crlSequence: 4 };
const afterExpiry = certificate.expiresAt + HOUR;
const isRevokedLate = { revoked: { ...isRevoked, revokedAt: afterExpiry } };
const REVOKED = 'certificate_revoked';

/** Refusals that heartbeat and renewal share, in the order of [core-4-4]; each request also fails all later checks. */
function nodeChecks(request: typeof beat | typeof renew): readonly Row[] {
  const { type } = request;
  const late = { ...request, at: certificate.expiresAt };
  const early = { ...request, at: certificate.issuedAt - 1 };
  const foreign = { ...request, nodePublicKey: 'key-2' };
  const forged = { ...late, proof: 'invalid_signature' };
  const compromised = { ...forged, keyCompromised: true };
  const forgedForeign = { ...forged, nodePublicKey: 'key-2' };
  const foreignCompromised = { ...foreign, keyCompromised: true };
  const lateReplay = { ...late, proof: 'nonce_replay' };
  const stale = { ...request, proof: 'stale_timestamp' };
  const ofAnother = `a ${type} of another key is refused before`;
  return [
    [`a ${type} without a certificate is refused`, absent, request, 'unknown_certificate'],
    [`${ofAnother} the revocation`, revoked, foreign, 'certificate_key_mismatch'],
    [`a ${type}, revoked, comes before its proof`, revoked, forged, `${REVOKED}: ${formerly}`],
    ...inEach(
      [issued, renewed, superseded],
      [`${ofAnother} its proof and the window`, forgedForeign, 'certificate_key_mismatch'],
      [`${ofAnother} the compromise`, foreignCompromised, 'certificate_key_mismatch'],
      [`a ${type} of a compromised key is as revoked`, compromised, `${REVOKED}: key_compromise`],
      [`a failing ${type} comes before the window`, lateReplay, 'node_auth_failed: nonce_replay'],
      [`a ${type} before its issue is refused`, early, 'certificate_not_yet_valid'],
      [`a ${type} at the instant of expiry is refused`, late, 'certificate_expired'],
    ),
    [`a ${type} at the end of the grace is refused`, superseded, request, 'certificate_superseded'],
    [`a failing ${type} comes before it`, superseded, stale, 'node_auth_failed: stale_timestamp'],
  ];
}

const manyUnexpired = { ...renew, unexpiredCertificates: MAX_UNEXPIRED_CERTIFICATES };
const fewLive = { ...manyUnexpired, liveCertificates: MAX_LIVE_CERTIFICATES - 1 };
const otherRoles = { ...renew, roles: ['role:x'] };
const forgedRoles = { ...renew, proof: 'invalid_signature', roles: 'malformed' };
const manyOfOthers = { ...manyUnexpired, roles: ['role:x'] };
const lateOfOthers = { ...otherRoles, at: certificate.expiresAt };
const renewInOrder = {
  ...renew,
  roles: ['role:anchor', 'role:client'],
  supersededFrom: NOW + HOUR,
};
const hasGrace = { renewed: { renewedAt: NOW, supersededFrom: NOW + HOUR } };
const isRenewedNow = { renewed: { renewedAt: NOW } };
const renewAgain = { ...renew, at: NOW - 1, supersededFrom: NOW + HOUR };
const isRenewedAgain = { renewed: { renewedAt: NOW - 1 } };
const WRONG_ROLES = [
  ['role:client'],
  ['role:client', 'role:anchor', 'role:x'],
  ['role:client', 'role:client'],
  [],
];

/** The roles that a renewal claims; checked last. */
const roleChecks = [
  ...WRONG_ROLES.flatMap((roles) =>
    inEach(
      [issued, renewed],
      [`it has no roles [${roles.join()}]`, { ...renew, roles }, 'renewal_role_change_forbidden'],
    ),
  ),
  ...inEach(
    [issued, renewed],
    ['roles that are no list are malformed', { ...renew, roles: 'malformed' }, 'malformed_roles'],
    ['a key with both maximums gets no further one', manyUnexpired, 'too_many_live_certificates'],
    ['room for a live one, and many superseded', fewLive, 'renewed', isRenewedNow],
    ['other roles come before the number', manyOfOthers, 'renewal_role_change_forbidden'],
    ['expiry comes before the roles', lateOfOthers, 'certificate_expired'],
    ['a failing proof too', forgedRoles, 'node_auth_failed: invalid_signature'],
  ),
  ...[issued, renewed].map(
    (from): Row => [
      `${from.value}, the renewal of a newer certificate of the key supersedes it at once`,
      from,
      { type: 'supersede', at: NOW },
      'superseded',
      { [from.value]: { supersededFrom: NOW } },
    ],
  ),
];

const isRenewed = { renewed: { renewedAt: NOW, supersededFrom: null } };

testTable(certificateMachine, [
  ['issued, it holds that', absent, { type: 'issue', certificate }, '', { issued: certificate }],
  ['a heartbeat is taken', issued, beat, 'alive'],
  ['at the instant of issue too', issued, { ...beat, at: certificate.issuedAt }, 'alive'],
  ['a millisecond before expiry too', issued, { ...beat, at: certificate.expiresAt - 1 }, 'alive'],
  ['renewed without grace, it goes on living', renewed, beat, 'alive'],
  ['it lives until the grace is over', superseded, { ...beat, at: NOW - 1 }, 'alive'],
  ['a renewal without claimed roles is taken', issued, renew, 'renewed', isRenewed],
  ['roles may come in another order', issued, renewInOrder, 'renewed', hasGrace],
  ['a renewed certificate can be renewed again', renewed, renew, 'renewed', isRenewed],
  ['renewed again, the grace stays', superseded, renewAgain, 'renewed', isRenewedAgain],
  ...nodeChecks(beat),
  ...nodeChecks(renew),
  ...roleChecks,
  ['revoked when issued', issued, revoke, 'revoked', { revoked: isRevoked }],
  ['revoked when renewed', renewed, revoke, 'revoked', { revoked: isRevoked }],
  ['revoked after it expired', issued, { ...revoke, at: afterExpiry }, 'revoked', isRevokedLate],
  ['revoked again, time, reason and place in the list stay', revoked, revoke, 'already_revoked'],
  ['one that does not exist cannot be revoked', absent, revoke, 'certificate_not_found'],
]);

testUnhandled(certificateMachine, [
  ['issuing a certificate that is issued', issued, { type: 'issue', certificate }],
  ['issuing a certificate that is renewed', renewed, { type: 'issue', certificate }],
  ['issuing a certificate that is revoked', revoked, { type: 'issue', certificate }],
  ['an event of another machine', issued, { type: 'authenticate' }],
  ['an event without a name', issued, { type: '' }],
]);

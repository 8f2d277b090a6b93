import {
  type Certificate,
  certificateMachine,
  MAX_LIVE_CERTIFICATES,
  MAX_UNEXPIRED_CERTIFICATES,
  UNTOUCHED,
} from '../../machines/certificate.ts';
import { HOUR, NOW, type Row, testTable, testUnhandled } from '../support/state-tables.ts';

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
export const beat = { type: 'heartbeat', ...proven } as const;
const renew = {
  type: 'renew',
  ...proven,
  roles: null,
  supersededFrom: null,
  liveCertificates: MAX_LIVE_CERTIFICATES,
  unexpiredCertificates: MAX_UNEXPIRED_CERTIFICATES - 1,
} as const;
export const revoke = {
  type: 'revoke',
  at: NOW,
  reason: 'key_compromise',
  crlSequence: 4,
} as const;
const revocation = {
  value: 'revoked',
  facts: { revokedAt: NOW, revocationReason: 'key_compromise', crlSequence: 4 },
};

/** Refusals that heartbeat and renewal share, in the order of [core-4-4]; each request also fails all later checks. */
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

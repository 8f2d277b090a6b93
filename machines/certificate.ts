/**
 * Node certificate ([service-states-certificate]; order of refusals from [core-4-4] and [core-4-5]). In state
 * `renewed`, a successor has been issued; the certificate stays usable until it expires or is superseded.
 */
import { assertEvent, assign, emit, setup } from 'xstate';
import { type Refused, refused } from './refused.ts';

/** What renewal and revocation record on a certificate. Instants are milliseconds since the epoch. */
export interface RevocationAndRenewal {
  readonly renewedFrom: string | null;
  readonly renewedAt: number | null;
  /** When a renewed certificate starts to be refused; null means never. */
  readonly supersededFrom: number | null;
  readonly revokedAt: number | null;
  readonly revocationReason: string | null;
  /** The CRL sequence that first listed the certificate: its place in the list. */
  readonly crlSequence: number | null;
}

/** The value for a certificate that was neither renewed nor revoked. */
export const UNTOUCHED: RevocationAndRenewal = {
  renewedFrom: null,
  renewedAt: null,
  supersededFrom: null,
  revokedAt: null,
  revocationReason: null,
  crlSequence: null,
};

/** Instants are milliseconds since the epoch. */
export interface Certificate extends RevocationAndRenewal {
  readonly nodePublicKey: string;
  readonly roles: readonly string[];
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** The cap set by the original invite; renewals never exceed it. */
  readonly maxValidityHours: number;
  readonly remoteAddr: string;
}

interface NodeRequest {
  readonly at: number;
  readonly nodePublicKey: string;
  /** A certificate of this key was revoked for key compromise, which ended all certificates of the key. */
  readonly keyCompromised: boolean;
  /** `valid`, or why the proof of possession fails. */
  readonly proof: string;
}

type CertificateEvent =
  | { readonly type: 'issue'; readonly certificate: Certificate }
  | ({ readonly type: 'heartbeat' } & NodeRequest)
  | ({
      readonly type: 'renew';
      /** Roles claimed by the node; null when it claims none. */
      readonly roles: readonly string[] | 'malformed' | null;
      readonly supersededFrom: number | null;
      /** The number of live certificates of the key, including this one. */
      readonly liveCertificates: number;
      /** The number of unexpired certificates of the key, including superseded ones. */
      readonly unexpiredCertificates: number;
    } & NodeRequest)
  /** A newer certificate of the key was renewed, and this one exceeds the limit on live certificates. */
  | { readonly type: 'supersede'; readonly at: number }
  | {
      readonly type: 'revoke';
      readonly at: number;
      readonly reason: string;
      readonly crlSequence: number;
    };

export type CertificateRefusal =
  | 'unknown_certificate'
  | 'certificate_not_found'
  | 'certificate_key_mismatch'
  | 'certificate_revoked'
  | 'node_auth_failed'
  | 'certificate_not_yet_valid'
  | 'certificate_expired'
  | 'certificate_superseded'
  | 'malformed_roles'
  | 'renewal_role_change_forbidden'
  | 'too_many_live_certificates';

const none: Certificate = {
  nodePublicKey: '',
  roles: [],
  issuedAt: 0,
  expiresAt: 0,
  maxValidityHours: 0,
  remoteAddr: '',
  ...UNTOUCHED,
};

function sameMultiset(a: readonly string[], b: readonly string[]): boolean {
  return JSON.stringify([...a].sort()) === JSON.stringify([...b].sort());
}

const certificate = setup({
  types: {} as {
    context: Certificate;
    events: CertificateEvent;
    emitted:
      | Refused<CertificateRefusal>
      | { readonly type: 'alive' | 'renewed' | 'superseded' | 'revoked' | 'already_revoked' };
    tags: 'terminal';
  },
  guards: {
    keyDiffers: ({ context, event }) => {
      assertEvent(event, ['heartbeat', 'renew']);
      return event.nodePublicKey !== context.nodePublicKey;
    },
    keyCompromised: ({ event }) => {
      assertEvent(event, ['heartbeat', 'renew']);
      return event.keyCompromised;
    },
    proofFails: ({ event }) => {
      assertEvent(event, ['heartbeat', 'renew']);
      return event.proof !== 'valid';
    },
    notYetValid: ({ context, event }) => {
      assertEvent(event, ['heartbeat', 'renew']);
      return context.issuedAt > event.at;
    },
    expired: ({ context, event }) => {
      assertEvent(event, ['heartbeat', 'renew']);
      return context.expiresAt <= event.at;
    },
    superseded: ({ context: { supersededFrom }, event }) => {
      assertEvent(event, ['heartbeat', 'renew']);
      return supersededFrom !== null && supersededFrom <= event.at;
    },
    rolesMalformed: ({ event }) => {
      assertEvent(event, 'renew');
      return event.roles === 'malformed';
    },
    rolesChanged: ({ context, event }) => {
      assertEvent(event, 'renew');
      const { roles } = event;
      return roles !== null && roles !== 'malformed' && !sameMultiset(roles, context.roles);
    },
    tooManyLive: ({ event: renewal }) => {
      assertEvent(renewal, 'renew');
      return (
        renewal.liveCertificates >= MAX_LIVE_CERTIFICATES &&
        renewal.unexpiredCertificates >= MAX_UNEXPIRED_CERTIFICATES
      );
    },
  },
  actions: {
    refuseProof: emit(({ event }) => {
      assertEvent(event, ['heartbeat', 'renew']);
      return refused('node_auth_failed', event.proof);
    }),
    refuseRevoked: emit(({ context }) =>
      refused('certificate_revoked', context.revocationReason ?? 'unspecified'),
    ),
  },
});

/** The checks of heartbeat and renewal, in the order of the contract. */
const nodeChecks = [
  { guard: 'keyDiffers', actions: certificate.emit(refused('certificate_key_mismatch')) },
  {
    guard: 'keyCompromised',
    actions: certificate.emit(refused('certificate_revoked', 'key_compromise')),
  },
  { guard: 'proofFails', actions: 'refuseProof' },
  { guard: 'notYetValid', actions: certificate.emit(refused('certificate_not_yet_valid')) },
  { guard: 'expired', actions: certificate.emit(refused('certificate_expired')) },
  { guard: 'superseded', actions: certificate.emit(refused('certificate_superseded')) },
] as const;

/** What both states of a certificate in use answer: a renewed one is used until it expires or is superseded. */
const inUse = certificate.createStateConfig({
  on: {
    heartbeat: [...nodeChecks, { actions: emit({ type: 'alive' }) }],
    renew: [
      ...nodeChecks,
      { guard: 'rolesMalformed', actions: emit(refused('malformed_roles')) },
      { guard: 'rolesChanged', actions: emit(refused('renewal_role_change_forbidden')) },
      { guard: 'tooManyLive', actions: emit(refused('too_many_live_certificates')) },
      {
        target: 'renewed',
        actions: [
          assign(({ context, event }) => ({
            renewedAt: event.at,
            // The grace period starts at the first renewal.
            supersededFrom: context.supersededFrom ?? event.supersededFrom,
          })),
          emit({ type: 'renewed' }),
        ],
      },
    ],
    supersede: {
      actions: [
        assign(({ event }) => ({ supersededFrom: event.at })),
        emit({ type: 'superseded' }),
      ],
    },
    revoke: {
      target: 'revoked',
      actions: [
        assign(({ event: { at, reason, crlSequence } }) => ({
          revokedAt: at,
          revocationReason: reason,
          crlSequence,
        })),
        emit({ type: 'revoked' }),
      ],
    },
  },
});

export const certificateMachine = certificate.createMachine({
  id: 'certificate',
  initial: 'absent',
  context: none,
  states: {
    absent: {
      on: {
        issue: { target: 'issued', actions: assign(({ event }) => event.certificate) },
        heartbeat: { actions: emit(refused('unknown_certificate')) },
        renew: { actions: emit(refused('unknown_certificate')) },
        revoke: { actions: emit(refused('certificate_not_found')) },
      },
    },
    issued: inUse,
    renewed: inUse,
    // Refused before the proof is checked.
    revoked: {
      tags: 'terminal',
      on: {
        heartbeat: [
          { guard: 'keyDiffers', actions: emit(refused('certificate_key_mismatch')) },
          { actions: 'refuseRevoked' },
        ],
        renew: [
          { guard: 'keyDiffers', actions: emit(refused('certificate_key_mismatch')) },
          { actions: 'refuseRevoked' },
        ],
        revoke: { actions: emit({ type: 'already_revoked' }) },
      },
    },
  },
});

/** The most live certificates (neither revoked, expired nor superseded) that one node key may have. */
export const MAX_LIVE_CERTIFICATES = 16;

/** Once a key has this many unexpired certificates, a renewal no longer supersedes the oldest live ones. */
export const MAX_UNEXPIRED_CERTIFICATES = 256;

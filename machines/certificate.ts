/**
 * Node certificate ([service-states-certificate]; order of refusals from [core-4-4] and [core-4-5]). In state
 * `renewed`, a successor has been issued; the certificate stays usable until it expires or is superseded.
 */
import { assign, emit, setup } from 'xstate';
import { MAX_LIVE_CERTIFICATES, MAX_UNEXPIRED_CERTIFICATES } from './certificate-limit.ts';
import type { Refused } from './refused.ts';

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

function isNodeRequest(event: CertificateEvent): event is CertificateEvent & NodeRequest {
  return event.type === 'heartbeat' || event.type === 'renew';
}

function sameMultiset(a: readonly string[], b: readonly string[]): boolean {
  return JSON.stringify([...a].sort()) === JSON.stringify([...b].sort());
}

const machine = setup({
  types: {} as {
    context: Certificate;
    events: CertificateEvent;
    emitted:
      | Refused<CertificateRefusal>
      | { readonly type: 'alive' | 'renewed' | 'superseded' | 'revoked' | 'already_revoked' };
  },
  guards: {
    keyDiffers: ({ context, event }) =>
      isNodeRequest(event) && event.nodePublicKey !== context.nodePublicKey,
    keyCompromised: ({ event }) => isNodeRequest(event) && event.keyCompromised,
    proofFails: ({ event }) => isNodeRequest(event) && event.proof !== 'valid',
    notYetValid: ({ context, event }) => isNodeRequest(event) && context.issuedAt > event.at,
    expired: ({ context, event }) => isNodeRequest(event) && context.expiresAt <= event.at,
    superseded: ({ context, event }) =>
      isNodeRequest(event) && context.supersededFrom !== null && context.supersededFrom <= event.at,
    rolesMalformed: ({ event }) => event.type === 'renew' && event.roles === 'malformed',
    rolesChanged: ({ context, event }) =>
      event.type === 'renew' &&
      event.roles !== null &&
      event.roles !== 'malformed' &&
      !sameMultiset(event.roles, context.roles),
    tooManyLive: ({ event }) =>
      event.type === 'renew' &&
      event.liveCertificates >= MAX_LIVE_CERTIFICATES &&
      event.unexpiredCertificates >= MAX_UNEXPIRED_CERTIFICATES,
  },
});

function refuse<Name extends CertificateRefusal>(refusal: Name) {
  return machine.emit({ type: 'refused' as const, refusal });
}

/** Checks that heartbeat and renewal share, in order. */
const nodeChecks = [
  { guard: 'keyDiffers' as const, actions: refuse('certificate_key_mismatch') },
  {
    guard: 'keyCompromised' as const,
    actions: machine.emit({
      type: 'refused' as const,
      refusal: 'certificate_revoked' as const,
      reason: 'key_compromise',
    }),
  },
  {
    guard: 'proofFails' as const,
    actions: machine.emit(({ event }) => ({
      type: 'refused' as const,
      refusal: 'node_auth_failed' as const,
      reason: isNodeRequest(event) ? event.proof : '',
    })),
  },
  { guard: 'notYetValid' as const, actions: refuse('certificate_not_yet_valid') },
  { guard: 'expired' as const, actions: refuse('certificate_expired') },
  { guard: 'superseded' as const, actions: refuse('certificate_superseded') },
];

const heartbeat = [...nodeChecks, { actions: machine.emit({ type: 'alive' as const }) }];

const renew = [
  ...nodeChecks,
  { guard: 'rolesMalformed' as const, actions: refuse('malformed_roles') },
  { guard: 'rolesChanged' as const, actions: refuse('renewal_role_change_forbidden') },
  { guard: 'tooManyLive' as const, actions: refuse('too_many_live_certificates') },
  {
    target: 'renewed',
    actions: [
      machine.assign(({ context, event }) =>
        event.type === 'renew'
          ? {
              renewedAt: event.at,
              // The grace period starts at the first renewal.
              supersededFrom: context.supersededFrom ?? event.supersededFrom,
            }
          : {},
      ),
      machine.emit({ type: 'renewed' as const }),
    ],
  },
];

const supersede = {
  actions: [
    machine.assign(({ event }) => (event.type === 'supersede' ? { supersededFrom: event.at } : {})),
    machine.emit({ type: 'superseded' as const }),
  ],
};

const revoke = {
  target: 'revoked',
  actions: [
    machine.assign(({ event }) =>
      event.type === 'revoke'
        ? { revokedAt: event.at, revocationReason: event.reason, crlSequence: event.crlSequence }
        : {},
    ),
    machine.emit({ type: 'revoked' as const }),
  ],
};

/** A revoked certificate is refused before the proof is checked. */
const refuseRevoked = [
  { guard: 'keyDiffers' as const, actions: refuse('certificate_key_mismatch') },
  {
    actions: machine.emit(({ context }) => ({
      type: 'refused' as const,
      refusal: 'certificate_revoked' as const,
      reason: context.revocationReason ?? 'unspecified',
    })),
  },
];

export const certificateMachine = machine.createMachine({
  id: 'certificate',
  initial: 'absent',
  context: none,
  states: {
    absent: {
      on: {
        issue: { target: 'issued', actions: assign(({ event }) => event.certificate) },
        heartbeat: { actions: refuse('unknown_certificate') },
        renew: { actions: refuse('unknown_certificate') },
        revoke: { actions: refuse('certificate_not_found') },
      },
    },
    issued: { on: { heartbeat, renew, supersede, revoke } },
    renewed: { on: { heartbeat, renew, supersede, revoke } },
    revoked: {
      on: {
        heartbeat: refuseRevoked,
        renew: refuseRevoked,
        revoke: { actions: emit({ type: 'already_revoked' as const }) },
      },
    },
  },
});

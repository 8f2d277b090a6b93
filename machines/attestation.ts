/** A membership attestation issued by this authority [service-states-attestation]: the first revocation is final. */
import { assign, emit, setup } from 'xstate';
import { type Refused, refused } from './refused.ts';

/** Instants are milliseconds since the epoch. */
export interface Attestation {
  /** The signed record, as served; revocation never rewrites it. */
  readonly json: string;
  readonly issuer: string;
  readonly subject: string;
  readonly issuedAt: number;
  readonly revokedAt: number | null;
  readonly revocationReason: string | null;
}

type AttestationEvent =
  | { readonly type: 'issue'; readonly attestation: Attestation }
  | { readonly type: 'revoke'; readonly at: number; readonly reason: string };

type AttestationRefusal = 'attestation_not_found';

const none: Attestation = {
  json: '',
  issuer: '',
  subject: '',
  issuedAt: 0,
  revokedAt: null,
  revocationReason: null,
};

export const attestationMachine = setup({
  types: {} as {
    context: Attestation;
    events: AttestationEvent;
    emitted:
      | Refused<AttestationRefusal>
      | { readonly type: 'issued' | 'revoked' | 'already_revoked' };
    tags: 'terminal';
  },
}).createMachine({
  id: 'attestation',
  initial: 'absent',
  context: none,
  states: {
    absent: {
      on: {
        issue: {
          target: 'active',
          actions: [assign(({ event }) => event.attestation), emit({ type: 'issued' })],
        },
        revoke: { actions: emit(refused('attestation_not_found')) },
      },
    },
    active: {
      on: {
        revoke: {
          target: 'revoked',
          actions: [
            assign(({ event }) => ({ revokedAt: event.at, revocationReason: event.reason })),
            emit({ type: 'revoked' }),
          ],
        },
      },
    },
    revoked: { tags: 'terminal', on: { revoke: { actions: emit({ type: 'already_revoked' }) } } },
  },
});

/**
 * A revocation that a restore knows from a published list alone [backup-7]: the certificate or attestation was
 * issued after the backup, so nothing else of it is left. Final, like every revocation.
 */
import { setup } from 'xstate';

/** Instants are milliseconds since the epoch. */
export interface RestoredRevocation {
  readonly list: 'crl' | 'feed';
  /** The certificate or attestation. */
  readonly revokedId: string;
  /** In whose name the attestation was issued; empty for a certificate. */
  readonly issuer: string;
  readonly revokedAt: number;
  readonly reason: string;
  /** The CRL sequence that lists it from the restore on; null for an attestation. */
  readonly crlSequence: number | null;
}

export type RestoredRevocationEvent = {
  readonly type: 'restore';
  readonly revocation: RestoredRevocation;
};

const machine = setup({
  types: {} as {
    context: RestoredRevocation;
    events: RestoredRevocationEvent;
    emitted: { readonly type: 'revoked' | 'already_revoked' };
  },
});

export const restoredRevocationMachine = machine.createMachine({
  id: 'restored-revocation',
  initial: 'absent',
  context: {
    list: 'crl',
    revokedId: '',
    issuer: '',
    revokedAt: 0,
    reason: '',
    crlSequence: null,
  },
  states: {
    absent: {
      on: {
        restore: {
          target: 'revoked',
          actions: [
            machine.assign(({ event }) => event.revocation),
            machine.emit({ type: 'revoked' }),
          ],
        },
      },
    },
    revoked: { on: { restore: { actions: machine.emit({ type: 'already_revoked' }) } } },
  },
});

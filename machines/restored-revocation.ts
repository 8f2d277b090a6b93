/**
 * A revocation that a restore knows only from a published list [backup-7]: the certificate or attestation was issued
 * after the backup, so nothing else about it survives. Final, like every revocation.
 */
import { setup } from 'xstate';

/** Instants are milliseconds since the epoch. */
export interface RestoredRevocation {
  readonly list: 'crl' | 'feed';
  /** The certificate or attestation. */
  readonly revokedId: string;
  /** The issuer of the attestation; empty for a certificate. */
  readonly issuer: string;
  readonly revokedAt: number;
  readonly reason: string;
  /** The first CRL sequence after the restore that lists it; null for an attestation. */
  readonly crlSequence: number | null;
}

type RestoredRevocationEvent = {
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

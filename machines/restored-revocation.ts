/**
 * A revocation that a restore knows only from a published list [backup-7]: the certificate or attestation was issued
 * after the backup, so nothing else about it survives. Final, like every revocation.
 */
import { oneRecordMachine } from './one-record.ts';

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

export const restoredRevocationMachine = oneRecordMachine<RestoredRevocation, 'revoked'>({
  id: 'restored-revocation',
  none: { list: 'crl', revokedId: '', issuer: '', revokedAt: 0, reason: '', crlSequence: null },
  state: 'revoked',
  isFinal: true,
});

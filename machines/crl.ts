/**
 * The certificate revocation list: its entries are the revoked certificates [core-4-8], [core-4-15],
 * [core-5-5].
 */
import { type SequenceVersion, sequenceMachine } from './signed-sequence.ts';

export interface Crl extends SequenceVersion {
  readonly crlId: string;
  readonly nextUpdate: number;
}

export const crlMachine = sequenceMachine<Crl>({
  id: 'crl',
  none: { sequence: -1, crlId: '', issuedAt: 0, nextUpdate: 0, digest: '' },
  firsts: [0],
  published: 'current',
  halfOver: ({ issuedAt, nextUpdate }) => (issuedAt + nextUpdate) / 2,
});

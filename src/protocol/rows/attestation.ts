/** An attestation, as listed [core-4-11]. */
import Type, { type Static } from 'typebox';
import { MembershipAttestation } from '../records/membership-attestation.ts';
import { Datetime } from '../records/record.ts';

export const AttestationRow = Type.Object({
  attestation: MembershipAttestation,
  /** The stored status; time does not change it. */
  status: Type.Enum(['active', 'revoked']),
  revoked_at: Type.Union([Datetime, Type.Null()]),
  revocation_reason: Type.Union([Type.String(), Type.Null()]),
});

export type AttestationRow = Static<typeof AttestationRow>;

/** MembershipAttestation: portable evidence that a subject belongs to a sovereign [core-5-7]. */
import Type, { type Static } from 'typebox';
import { Datetime, FreeForm, instantOf, nullable, recordReader, Signatures } from './record.ts';

/** The status at the issuer at the time of signing. */
export const RECORD_STATUSES = ['active', 'suspended', 'revoked'] as const;

export const Status = Type.Enum([...RECORD_STATUSES], { default: 'active' });

export const MembershipAttestation = Type.Object({
  attestation_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  subject_id: Type.String(),
  subject_public_key: nullable(Type.String()),
  roles: Type.Array(Type.String(), { default: [] }),
  status: Status,
  issued_at: Datetime,
  valid_from: Datetime,
  expires_at: Datetime,
  issued_by: Type.String(),
  claims: FreeForm,
  signatures: Signatures,
});

export type MembershipAttestation = Static<typeof MembershipAttestation>;

export const readMembershipAttestation = recordReader(MembershipAttestation, hasValidWindow);

export interface ValidityWindow {
  readonly issued_at: string;
  readonly valid_from: string;
  readonly expires_at: string;
}

/** A window ends after it begins, and nothing is issued after its end. */
export function hasValidWindow({ issued_at, valid_from, expires_at }: ValidityWindow): boolean {
  const end = instantOf(expires_at);
  return end > instantOf(valid_from) && instantOf(issued_at) <= end;
}

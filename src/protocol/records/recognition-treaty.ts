/** RecognitionTreaty: one sovereign's signed recognition of another [core-5-9]. */
import Type, { type Static } from 'typebox';
import { hasValidWindow, Status } from './membership-attestation.ts';
import { Datetime, FreeForm, recordReader, Signatures } from './record.ts';

export const TreatyScope = Type.Object(
  {
    /** Empty allows any role. */
    allowed_roles: Type.Array(Type.String(), { default: [] }),
    accepted_statuses: Type.Array(Status, { default: ['active'] }),
    claims: FreeForm,
  },
  { default: {} },
);

export const RecognitionTreaty = Type.Object({
  treaty_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  subject_sovereign_id: Type.String(),
  subject_public_keys: Type.Array(Type.String(), { minItems: 1 }),
  scope: TreatyScope,
  status: Status,
  issued_at: Datetime,
  valid_from: Datetime,
  expires_at: Datetime,
  issued_by: Type.String(),
  metadata: FreeForm,
  signatures: Signatures,
});

export type TreatyScope = Static<typeof TreatyScope>;
export type RecognitionTreaty = Static<typeof RecognitionTreaty>;

export const readTreatyScope = recordReader(TreatyScope);
export const readRecognitionTreaty = recordReader(RecognitionTreaty, hasValidWindow);

const REPLACEMENT = /^(?:replaced_by|renewed_by):([\s\S]+)$/;

/** The id of the successor treaty that a revocation reason names; null if it names none. */
export function successorIn(reason: string | null): string | null {
  return reason === null ? null : (REPLACEMENT.exec(reason)?.[1] ?? null);
}

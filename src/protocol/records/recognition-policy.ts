/** RecognitionPolicy: whose attestations a sovereign accepts, unsigned [core-5-8]. */
import Type, { type Static } from 'typebox';
import { compareCodePoints } from '../../base/json/write.ts';
import { Status } from './membership-attestation.ts';
import { recordReader } from './record.ts';

export const RecognizedIssuer = Type.Object({
  sovereign_id: Type.String(),
  public_keys: Type.Array(Type.String(), { minItems: 1 }),
  allowed_roles: Type.Array(Type.String(), { default: [] }),
  accepted_statuses: Type.Array(Status, { default: ['active'] }),
});

export const RecognitionPolicy = Type.Object({
  local_sovereign_id: Type.String(),
  recognized_issuers: Type.Array(RecognizedIssuer, { default: [] }),
  revoked_attestation_ids: Type.Array(Type.String(), { default: [] }),
});

export type RecognizedIssuer = Static<typeof RecognizedIssuer>;
export type RecognitionPolicy = Static<typeof RecognitionPolicy>;

const readShape = recordReader(RecognitionPolicy);

/** Reads a policy; its revoked ids are a set, returned sorted. */
export function readRecognitionPolicy(received: unknown): RecognitionPolicy | null {
  const policy = readShape(received);
  if (policy === null) return null;
  return { ...policy, revoked_attestation_ids: sortedSet(policy.revoked_attestation_ids) };
}

/** Without duplicates, ordered by code point. */
export function sortedSet(ids: readonly string[]): string[] {
  return [...new Set(ids)].sort(compareCodePoints);
}

/** JustificationProof: the gates a boundary decision passed or failed, as validators vote on [trust-2-9]. */
import Type, { type Static } from 'typebox';
import type { Sha256, VerifySignature } from '../../base/crypto/primitives.ts';
import { type Issuer, publicKeysOf } from './issuer.ts';
import {
  Datetime,
  FreeForm,
  FreshDatetime,
  FreshId,
  nullable,
  recordReader,
  SignatureItem,
} from './record.ts';
import { isSinglySignedByAny, singlySignedText } from './signed-record.ts';

const GateTraceEntry = Type.Object({
  gate_name: Type.String(),
  gate_type: Type.String(),
  evaluated_at: Datetime,
  inputs: FreeForm,
  result: Type.Boolean(),
  reason: Type.String(),
  metadata: FreeForm,
});

const GateTrace = Type.Object({
  trace_id: FreshId,
  decision_id: Type.String(),
  agreement_id: Type.String(),
  operator_sovereign_id: Type.String(),
  traced_at: FreshDatetime,
  entries: Type.Array(GateTraceEntry, { default: [] }),
  short_circuited_at: nullable(Type.String()),
  final_authorized: Type.Boolean(),
});

export const JustificationProof = Type.Object({
  proof_id: FreshId,
  decision_id: Type.String(),
  trace: GateTrace,
  proof_issued_at: FreshDatetime,
  issuer_sovereign_id: Type.String(),
  signature: nullable(SignatureItem),
});
export type JustificationProof = Static<typeof JustificationProof>;

export const readJustificationProof = recordReader(JustificationProof);

/** Hex SHA-256 of the signed text. */
export function justificationDigest(proof: JustificationProof, sha256: Sha256): string {
  return sha256.hex(singlySignedText(proof));
}

/** Whether the proof is in the issuer's name although the issuer did not sign it. */
export function isForgery(
  issuer: Issuer,
  proof: JustificationProof,
  verify: VerifySignature,
): boolean {
  if (proof.issuer_sovereign_id !== issuer.sovereignId) return false;
  return !isSinglySignedByAny(proof, publicKeysOf(issuer), verify);
}

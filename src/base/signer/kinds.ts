/** The kind of a text that the authority asks to have signed, recognized by how it begins [signer-4]. */

/** Canonical JSON is sorted by name: records of one kind begin alike. */
const BEGINNINGS: readonly (readonly [kind: string, beginning: RegExp])[] = [
  ['challenge', /^mesh-na signer 1\n/],
  ['link', /^mesh-na link 1\n/],
  ['join_certificate', /^\{"cert_id":/],
  ['revocation_list', /^\{"crl_id":"[^"]*","issued_at":/],
  ['revocation_list_revision', /^\{"crl_id":"[^"]*","entries_digest":/],
  ['revocation_feed', /^\{"feed_id":/],
  ['webhook', /^\{"body_sha256":/],
  ['bulletin', /^\{"crl_digest":/],
  ['attestation', /^\{"attestation_id":/],
  ['treaty', /^\{"expires_at":"[^"]*","issued_at":"[^"]*","issued_by":/],
  ['state_head', /^\{"audit_head":"[^"]*","audit_length":\d+,"crl_sequence":/],
  ['backup', /^\{"audit_head":"[^"]*","audit_length":\d+,"created_at":/],
  ['agreement', /^\{"agreed_terms":/],
  ['offer', /^\{"created_at":"[^"]*","expires_at":/],
  ['boundary_decision', /^\{"agreement_id":[^,]*,"authorized":/],
  ['commitment', /^\{"agreement_id":[^,]*,"capability_count":/],
  ['nullifier', /^\{"expires_at":"[^"]*","issued_at":"[^"]*","nonce":/],
  ['consensus', /^\{"cascade_assessment_digest":/],
  ['data_intent', /^\{"agent_sovereign_id":/],
  ['data_license', /^\{"allowed_access_types":/],
  ['trust_evidence', /^\{"evaluated_at":/],
  ['vote', /^\{"context_digest":/],
  // Its members are the operators' to choose, those of the manifest apart.
  ['policy', /^\{.*"min_client_version":/s],
];

/** Where every beginning ends. */
const BEGINNING_BYTES = 512;

/** The kind; `other` when it is none that the authority is known to sign. */
export function kindOf(text: Uint8Array): string {
  const start = Buffer.from(text.buffer, text.byteOffset, Math.min(text.length, BEGINNING_BYTES));
  const beginning = start.toString('latin1');
  return BEGINNINGS.find(([, pattern]) => pattern.test(beginning))?.[0] ?? 'other';
}

/** A signed record for verifications: evidence of a trust decision, with one signature. */
import { SHA256 } from '../base/crypto/digest.ts';
import { jsonText } from '../base/json/write.ts';
import { systemRuntime } from '../base/runtime.ts';
import type { Issuer } from '../protocol/records/issuer.ts';
import {
  buildTrustEvidence,
  type TrustDecision,
  type TrustEvidence,
} from '../protocol/records/trust-evidence.ts';
import { newKey } from './requests.ts';

const DAY = 86_400_000;

/** Dates records a day ahead, so that nothing expires during the run; no rule requires records from the past. */
export function issuerNamed(sovereignId: string): Issuer {
  const signer = newKey();
  const now = systemRuntime.now() + DAY;
  return {
    sovereignId,
    keyId: signer.publicKey,
    signer,
    sha256: SHA256,
    now,
    uuid: () => systemRuntime.uuid(),
  };
}

export function evidenceAbout(issuer: Issuer, target: string): TrustEvidence {
  const detail = 'a path of active treaties leads there';
  const decision: TrustDecision = {
    source_sovereign_id: issuer.sovereignId,
    target_sovereign_id: target,
    verdict: 'allow',
    reason: 'active_treaty_path',
    requested_roles: ['role:client'],
    trusted: true,
    hop_count: 1,
    signals: [{ code: 'active_treaty_path', severity: 'info', detail }],
    evaluated_at: '2026-01-15T12:00:00Z',
  };
  return buildTrustEvidence(issuer, decision, 'ab'.repeat(32));
}

/** The body of a request that verifies the evidence; the authority accepts it. */
export function verificationBody(issuer: Issuer, evidence: TrustEvidence): string {
  return jsonText({ evidence, issuer_public_keys: [issuer.signer.publicKey] });
}

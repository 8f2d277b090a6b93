/** The join certificate in the form its node receives [core-4-3]. */
import type { Certificate } from '../../../machines/certificate.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { signRecord } from '../../protocol/records/signed-record.ts';
import type { Authority } from './authority.ts';

export function signedCertificate(
  { settings: { networkName }, signer }: Authority,
  certId: string,
  { nodePublicKey, roles, issuedAt, expiresAt }: Certificate,
) {
  const then = signer.at(issuedAt);
  const record = {
    cert_id: certId,
    node_public_key: nodePublicKey,
    network_name: networkName,
    roles,
    issued_at: formatInstant(issuedAt),
    expires_at: formatInstant(expiresAt),
    issued_by: then.keyId,
  };
  return signRecord(record, then);
}

/** The certificate exactly as it was issued, because signatures are deterministic; null if it is no longer stored. */
export function storedCertificate(na: Authority, certId: string): JsonObject | null {
  const stored = na.subjects.current('certificate', certId);
  return stored === undefined ? null : signedCertificate(na, certId, stored.context);
}

/** POST /admin/revoke (wire rules 4.8): the certificate and the next CRL change in one transaction. */
import type { CertificateRefusal } from '../../../machines/certificate.ts';
import { Refusal } from '../../refusal.ts';
import type { Handler } from '../engine/admission.ts';
import { refusalIn } from '../engine/refusals.ts';
import type { UnitOfWork } from '../engine/unit-of-work.ts';
import { awaitCrl, nextCrlSequence, publishCrl } from '../publication/crl-calls.ts';

export const revokeCertificate: Handler<'revokeCertificate'> = (
  na,
  unit,
  { certId, reason },
  operator,
) => {
  const crlSequence = nextCrlSequence(na, unit);
  const event = { type: 'revoke' as const, at: unit.at, reason, crlSequence };
  const emitted = unit.send('certificate', certId, event);
  const refused = refusalIn<CertificateRefusal>(emitted);
  if (refused?.refusal === 'certificate_not_found') throw new Refusal('certificate_not_found');
  if (emitted.some(({ type }) => type === 'already_revoked')) {
    awaitCrl(na, unit);
    return { crl_sequence: crlSequence - 1, revoked_count: na.revocations.count() };
  }
  const entry = na.revocations.entryOf(certId, unit.at, reason);
  const revokedCount = publishCrl(na, unit, [entry]);
  evictAgentOf(unit, unit.existing('certificate', certId).nodePublicKey);
  unit.whenCommitted(() => na.liveness.retire(certId));
  unit.audit('certificate_revoked', {
    cert_id: certId,
    reason,
    crl_sequence: crlSequence,
    remote_addr: operator.remoteAddr,
  });
  return { crl_sequence: crlSequence, revoked_count: revokedCount };
};

/** A node whose certificate is revoked, for whatever reason, is no longer offered to its peers. */
function evictAgentOf(unit: UnitOfWork, nodePublicKey: string): void {
  if (unit.current('agent-registration', nodePublicKey)?.value !== 'registered') return;
  unit.send('agent-registration', nodePublicKey, {
    type: 'certificate_revoked',
    at: unit.at,
  });
}

/** POST /admin/revoke [core-4-8]: the certificate and the CRL change in one transaction. */
import { sha256Hex } from '../../base/crypto/digest.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { refusePrivateKeys } from '../engine/known-keys.ts';
import { refusalIn } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';

/**
 * A key compromise, or a request that names a key, revokes all certificates of the key. Any other request revokes
 * only the named certificate.
 */
export const revokeCertificate: Handler<'revokeCertificate'> = (
  na,
  unit,
  { reason, ...target },
  operator,
) => {
  const isOfKey = target.cert_id === null;
  refusePrivateKeys(na, [target.node_public_key]);
  const { list } = na.revocations;
  const crlSequence = list.nextNumber(unit);
  const { certId, key } = named(na, unit, target);
  const doomed =
    isOfKey || reason === 'key_compromise' ? na.certificates.unexpiredOf(key, unit.at) : [];
  // The list sorts certificates that are revoked in the same unit by id.
  const revoked = [...new Set(isOfKey ? doomed : [certId, ...doomed])]
    .sort(compareCodePoints)
    .filter((id) => revoke(unit, id, reason, crlSequence));
  const live = na.certificates.liveOf(key, unit.at).filter((id) => !revoked.includes(id));
  const others = {
    ...((isOfKey || revoked.some((id) => id !== certId)) && { revoked_cert_ids: revoked }),
    ...(live.length > 0 && { live_certificates_of_key: live.length }),
  };
  if (revoked.length === 0) {
    if (reason === 'key_compromise') recordCompromise(na, unit, key, certId, operator.remoteAddr);
    list.awaitShown(unit);
    return { crl_sequence: crlSequence - 1, revoked_count: list.ids().size, ...others };
  }
  const entries = revoked.map((id) => na.revocations.entryOf(id, unit.at, reason));
  list.issue(unit, entries);
  evictAgentOf(unit, key);
  unit.whenCommitted(() => revoked.forEach(na.liveness.retire));
  for (const id of revoked) {
    unit.audit('certificate_revoked', {
      cert_id: id,
      reason,
      crl_sequence: crlSequence,
      remote_addr: operator.remoteAddr,
    });
  }
  return {
    crl_sequence: crlSequence,
    revoked_count: list.ids().size + entries.length,
    ...others,
  };
};

/** The target certificate and its key; if the request names a key, the key's newest certificate. */
function named(
  na: Authority,
  unit: UnitOfWork,
  { cert_id: id, node_public_key: given }: Omit<CallInput<'revokeCertificate'>, 'reason'>,
) {
  if (id !== null) {
    const key = unit.current('certificate', id)?.context.nodePublicKey ?? '';
    return { certId: id, key };
  }
  const key = given ?? '';
  const [certId] = na.certificates.ownedBy(key);
  if (certId === undefined) throw new Refusal('certificate_not_found');
  return { certId, key };
}

/**
 * Records the compromise for the key itself, because all its certificates were revoked before, and their CRL entries
 * keep their original reasons.
 */
function recordCompromise(
  na: Authority,
  unit: UnitOfWork,
  nodePublicKey: string,
  certId: string,
  remoteAddr: string,
): void {
  if (na.revocations.isCompromised(nodePublicKey)) return;
  // If the head of the state is kept, it must be signed before this request is answered.
  na.signer.assertAvailable();
  unit.send('node-key', sha256Hex(nodePublicKey), {
    type: 'record',
    record: { nodePublicKey, compromisedAt: unit.at },
  });
  evictAgentOf(unit, nodePublicKey);
  unit.audit('node_key_compromised', {
    cert_id: certId,
    node_public_key: nodePublicKey,
    remote_addr: remoteAddr,
  });
}

/** Returns false if the certificate was already revoked. */
function revoke(unit: UnitOfWork, certId: string, reason: string, crlSequence: number): boolean {
  const event = { type: 'revoke' as const, at: unit.at, reason, crlSequence };
  const emitted = unit.send('certificate', certId, event);
  const refused = refusalIn(emitted);
  if (refused !== null) throw new Refusal('certificate_not_found');
  return emitted.some(({ type }) => type === 'revoked');
}

/** Once a certificate is revoked, for any reason, its node is no longer listed for peers. */
function evictAgentOf(unit: UnitOfWork, nodePublicKey: string): void {
  if (unit.current('agent-registration', nodePublicKey)?.value !== 'registered') return;
  unit.send('agent-registration', nodePublicKey, {
    type: 'certificate_revoked',
    at: unit.at,
  });
}

/** `node status`: the saved certificate, judged by the genesis, the clock and the revocation list. */

import { systemRuntime } from '../base/runtime.ts';
import { certificateProblem, certificateReason } from '../client/network-trust.ts';
import { instantOf } from '../protocol/records/record.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from './exit-codes.ts';
import { readAgentState, readCertificate, readNodeKey } from './node-folder.ts';
import { type OfflineTrustOptions, updateNetwork, verifyHeldNetwork } from './node-trust.ts';
import { printResult } from './output.ts';

export async function runStatus(options: OfflineTrustOptions): Promise<void> {
  const { nodeDir, offline, crl: file } = options;
  if (file !== undefined && !offline) throw usageFailure('--crl needs --offline');
  const certificate = onLocalFiles(() => readCertificate(nodeDir));
  const { publicKey } = onLocalFiles(() => readNodeKey(nodeDir));
  const { genesis, crl } = await (offline ? verifyHeldNetwork : updateNetwork)(options);
  const entry = crl.revoked_certificates.find(
    ({ certificate_id }) => certificate_id === certificate.cert_id,
  );
  const agent = onLocalFiles(() => readAgentState(nodeDir));
  const now = systemRuntime.now();
  const unrevoked = certificateReason(certificate, { genesis, publicKey }, now);
  const reason = entry === undefined ? unrevoked : 'revoked';
  const isExpired = now > instantOf(certificate.expires_at);
  const status = {
    cert_id: certificate.cert_id,
    node_public_key: certificate.node_public_key,
    network_name: certificate.network_name,
    roles: certificate.roles,
    expires_at: certificate.expires_at,
    expired: isExpired,
    revoked: entry !== undefined,
    revocation_reason: entry?.reason ?? null,
    crl_sequence: crl.sequence,
    valid: reason === 'valid',
    reason,
    ...(agent !== null && { agent }),
  };
  printResult(options, status, [
    `certificate  ${status.cert_id}`,
    `key          ${status.node_public_key}`,
    `network      ${status.network_name}`,
    `roles        ${status.roles.join(', ') || 'none'}`,
    `expires      ${status.expires_at}${isExpired ? ' (expired)' : ''}`,
    `revoked      ${entry === undefined ? 'no' : `${entry.reason}, ${entry.revoked_at}`} (list ${crl.sequence})`,
    `valid        ${reason === 'valid' ? 'yes' : `no: ${certificateProblem(reason)}`}`,
  ]);
  if (reason !== 'valid') throw failure(EXIT.refused, reason, '');
}

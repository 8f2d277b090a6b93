/** `node status`: the saved certificate, and its state in the revocation list. */
import { createPublicClient } from '../client/public-client.ts';
import type { JoinCertificate } from '../records/join-certificate.ts';
import { readCertificateRevocationList } from '../records/revocation-list.ts';
import { systemRuntime } from '../runtime.ts';
import { parseDatetime } from '../timestamp.ts';
import { EXIT, failure, onLocalFiles } from './exit-codes.ts';
import { readCertificate } from './node-folder.ts';
import type { FolderOptions } from './options.ts';
import { printResult } from './output.ts';

export async function runStatus(options: FolderOptions & { readonly url: string }): Promise<void> {
  const certificate = onLocalFiles(() => readCertificate(options.nodeDir));
  const crl = readCertificateRevocationList(await createPublicClient(options).crl());
  if (crl === null) {
    throw failure(EXIT.failed, 'invalid_crl', 'The authority serves no valid revocation list');
  }
  const entry = crl.revoked_certificates.find(
    ({ certificate_id }) => certificate_id === certificate.cert_id,
  );
  const status = {
    cert_id: certificate.cert_id,
    node_public_key: certificate.node_public_key,
    network_name: certificate.network_name,
    roles: certificate.roles,
    expires_at: certificate.expires_at,
    expired: isExpired(certificate),
    revoked: entry !== undefined,
    revocation_reason: entry?.reason ?? null,
    crl_sequence: crl.sequence,
  };
  printResult(options, status, [
    `certificate  ${status.cert_id}`,
    `key          ${status.node_public_key}`,
    `network      ${status.network_name}`,
    `roles        ${status.roles.join(', ') || 'none'}`,
    `expires      ${status.expires_at}${status.expired ? ' (expired)' : ''}`,
    `revoked      ${entry === undefined ? 'no' : `${entry.reason}, ${entry.revoked_at}`} (list ${crl.sequence})`,
  ]);
}

function isExpired({ expires_at }: JoinCertificate): boolean {
  const expiry = parseDatetime(expires_at);
  return expiry === null || expiry.instant <= systemRuntime.now();
}

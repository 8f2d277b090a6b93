/** Joins, heartbeats and renewals of nodes [core-3-1], [core-4-3] to [core-4-5]. */
import {
  type Certificate,
  type CertificateRefusal,
  MAX_LIVE_CERTIFICATES,
  UNTOUCHED,
} from '../../../machines/certificate.ts';
import type { InviteRefusal } from '../../../machines/invite.ts';
import type { Refused } from '../../../machines/refused.ts';
import { HOUR_MS } from '../../base/duration.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { NodeClaim } from '../../protocol/contract/claims.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import { currentSince } from '../authority-keys.ts';
import type { Handler } from '../engine/admission.ts';
import { signedCertificate } from '../engine/issuer.ts';
import { auditRefusal, type RefusalEvent } from '../engine/refusal-audit.ts';
import { assertRoom } from '../host-status.ts';
import { fingerprintOf, inviteId } from '../invites.ts';
import { descriptionRow } from '../node-descriptions.ts';
import { refusalIn } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { noticesOf, renewAfter } from './beat-advice.ts';
import { NOT_HEARD } from './known-chains.ts';

/** Consumes the invite and issues the certificate in one transaction, after the proof was checked. */
export const join: Handler<'join'> = (na, unit, given, proof) => {
  const { node, invite_token, validity_hours, hostname } = given;
  const invite = inviteId(invite_token);
  const event = {
    type: 'join' as const,
    at: unit.at,
    nodePublicKey: node.publicKey,
    keyCompromised: na.revocations.isCompromised(node.publicKey),
    liveCertificates: na.certificates.liveOf(node.publicKey, unit.at).length,
    proof,
  };
  const refused = refusalIn(unit.send('invite', invite, event));
  if (refused !== null) refuseJoin(na, unit, node, invite, refused.refusal);
  // This refusal stores nothing: the token remains usable, and the same request may be sent again.
  assertRoom(na);

  const { roles, maxValidityHours, name, labels } = unit.existing('invite', invite);
  const certificate = issue(na, unit, node, {
    roles,
    maxValidityHours,
    validityHours: Math.min(validity_hours, maxValidityHours),
    renewedFrom: null,
  });
  unit.audit('certificate_issued', {
    cert_id: certificate.cert_id,
    node_public_key: node.publicKey,
    invite_token_fingerprint: fingerprintOf(invite),
    roles,
    remote_addr: node.remoteAddr,
    ...descriptionRow({ name, labels, hostname }),
  });
  // Most nodes have no description, and then none is stored.
  if (name !== undefined || labels !== undefined || hostname !== null) {
    unit.send('node-description', node.publicKey, {
      type: 'join',
      name: name ?? null,
      // No labels leave those of the node as they are.
      labels: labels?.length ? labels : null,
      hostname,
    });
  }
  return certificate;
};

function refuseJoin(
  na: Authority,
  unit: UnitOfWork,
  node: NodeClaim,
  invite: string,
  refusal: InviteRefusal,
): never {
  if (refusal === 'node_key_compromised') {
    auditRefusal(na, unit, 'join_rejected', {
      node_public_key: node.publicKey,
      reason: refusal,
      invite_token_fingerprint: fingerprintOf(invite),
      remote_addr: node.remoteAddr,
    });
  }
  throw new Refusal(refusal);
}

/** Accepted heartbeats change only memory; the next liveness flush writes them to disk. */
export const heartbeat: Handler<'heartbeat'> = (na, unit, given, proof) => {
  const { node, cert_id: certId, status, bulletin, authority_keys_digest } = given;
  const event = {
    type: 'heartbeat' as const,
    at: unit.at,
    nodePublicKey: node.publicKey,
    keyCompromised: na.revocations.isCompromised(node.publicKey),
    proof,
  };
  const refused = refusalIn(unit.send('certificate', certId, event));
  if (refused !== null) refuseNode(na, unit, node, certId, 'heartbeat_rejected', refused);
  na.liveness.touch(certId, {
    at: unit.at,
    status,
    remoteAddr: node.remoteAddr,
    chain: na.knownChains.numberOf(authority_keys_digest),
  });
  if (bulletin) return advised(na, unit, certId);
  return { ack: true, server_time: formatInstant(unit.at) };
};

/** The answer with advice for the node; the edge adds the bulletin itself. */
function advised(na: Authority, unit: UnitOfWork, certId: string) {
  na.bulletin.keepCurrent(unit.at);
  const certificate = unit.existing('certificate', certId);
  const chain = na.authorityKeys.chain();
  const change = chain.inForce.at(-1);
  return {
    ack: true,
    server_time: formatInstant(unit.at),
    next_heartbeat_seconds: na.heartbeatInterval.next(na.liveness.activeCount(unit.at)),
    renew_after: formatInstant(
      renewAfter(certId, certificate, {
        since: currentSince(chain, na.settings.genesis),
        overlapUntil: chain.previous?.overlapUntil ?? null,
        isPlanned: change !== undefined && change.kind !== 'compromise',
      }),
    ),
    notices: noticesOf(certificate, unit.at),
  };
}

/** Issues a successor. Its roles and its maximum validity come from stored state, never from the node. */
export const renew: Handler<'renew'> = (na, unit, given, proof) => {
  const { node, cert_id: certId, validity_hours } = given;
  const { renewalGrace } = na.settings;
  const event = {
    type: 'renew' as const,
    at: unit.at,
    nodePublicKey: node.publicKey,
    keyCompromised: na.revocations.isCompromised(node.publicKey),
    proof,
    liveCertificates: na.certificates.liveOf(node.publicKey, unit.at).length,
    unexpiredCertificates: na.certificates.unexpiredOf(node.publicKey, unit.at).length,
    roles: claimedRoles(given.roles),
    supersededFrom: renewalGrace === null ? null : unit.at + renewalGrace,
  };
  const refused = refusalIn(unit.send('certificate', certId, event));
  if (refused !== null) refuseNode(na, unit, node, certId, 'renewal_rejected', refused);

  const old = unit.existing('certificate', certId);
  const superseded = supersedeOldest(na, unit, node.publicKey, certId);
  const renewed = issue(na, unit, node, {
    roles: old.roles,
    maxValidityHours: old.maxValidityHours,
    validityHours: Math.min(validity_hours, old.maxValidityHours),
    renewedFrom: certId,
  });
  na.liveness.markRenewed(certId);
  unit.whenCommitted(() => na.liveness.retireRenewed(certId));
  unit.audit('certificate_renewed', {
    old_cert_id: certId,
    new_cert_id: renewed.cert_id,
    node_public_key: node.publicKey,
    ...(superseded.length > 0 && { superseded_cert_ids: superseded }),
  });
  return renewed;
};

/** The roles that a node claims to have; null if it claims none. */
function claimedRoles(roles: unknown): readonly string[] | 'malformed' | null {
  if (roles === null) return null;
  return Array.isArray(roles) && roles.every((role) => typeof role === 'string')
    ? roles
    : 'malformed';
}

/**
 * Makes room for one more live certificate of the key. The certificate being renewed is kept, so that the node can
 * renew it again if the answer is lost.
 */
function supersedeOldest(
  na: Authority,
  unit: UnitOfWork,
  nodePublicKey: string,
  renewedId: string,
): readonly string[] {
  const live = na.certificates.liveOf(nodePublicKey, unit.at);
  const excess = live.length + 1 - MAX_LIVE_CERTIFICATES;
  if (excess <= 0) return [];
  const issuedAt = (id: string) => unit.existing('certificate', id).issuedAt;
  const oldest = live
    .filter((id) => id !== renewedId)
    .sort((a, b) => issuedAt(a) - issuedAt(b) || compareCodePoints(a, b))
    .slice(0, excess);
  for (const id of oldest) unit.send('certificate', id, { type: 'supersede', at: unit.at });
  return oldest;
}

function refuseNode(
  na: Authority,
  unit: UnitOfWork,
  node: NodeClaim,
  certId: string,
  event: RefusalEvent,
  { refusal, reason }: Refused<CertificateRefusal>,
): never {
  if (refusal === 'node_auth_failed') throw new Refusal(refusal);
  auditRefusal(na, unit, event, {
    cert_id: certId,
    reason: reason ?? (refusal === 'unknown_certificate' ? 'certificate_not_found' : refusal),
    remote_addr: node.remoteAddr,
  });
  if (refusal === 'malformed_roles')
    throw new Refusal('request_validation_failed', ROLES_NOT_A_LIST);
  throw new Refusal(refusal);
}

const ROLES_NOT_A_LIST = {
  errors: [{ loc: ['body', 'roles'], msg: 'must be a list of strings', type: 'type' }],
};

interface Terms {
  readonly roles: readonly string[];
  readonly maxValidityHours: number;
  readonly validityHours: number;
  readonly renewedFrom: string | null;
}

function issue(
  na: Authority,
  unit: UnitOfWork,
  node: NodeClaim,
  { roles, maxValidityHours, validityHours, renewedFrom }: Terms,
) {
  const certId = na.runtime.uuid();
  const expiresAt = unit.at + validityHours * HOUR_MS;
  const certificate: Certificate = {
    nodePublicKey: node.publicKey,
    roles,
    issuedAt: unit.at,
    expiresAt,
    maxValidityHours,
    remoteAddr: node.remoteAddr,
    ...UNTOUCHED,
    renewedFrom,
  };
  unit.send('certificate', certId, { type: 'issue', certificate });
  unit.keepAs({ certificate: certId });
  unit.whenCommitted(() =>
    na.liveness.touch(certId, {
      // The clock may have been set back while the certificate was being stored.
      at: Math.min(unit.at, na.runtime.now()),
      status: renewedFrom === null ? 'joined' : 'renewed',
      remoteAddr: node.remoteAddr,
      // The successor of a certificate has the same node, which still knows what it knew.
      chain: renewedFrom === null ? NOT_HEARD : na.liveness.chainOf(renewedFrom),
    }),
  );
  return signedCertificate(na, certId, certificate);
}

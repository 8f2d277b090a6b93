/** Join, heartbeat and renewal of nodes (wire rules 3.1, 4.3 to 4.5). */
import {
  type Certificate,
  type CertificateRefusal,
  UNTOUCHED,
} from '../../../machines/certificate.ts';
import type { InviteRefusal } from '../../../machines/invite.ts';
import type { Refused } from '../../../machines/refused.ts';
import type { NodeClaim, NodeProofVerdict } from '../../contract/claims.ts';
import { jsonText } from '../../json/write.ts';
import { signRecord } from '../../records/signed-record.ts';
import { Refusal } from '../../refusal.ts';
import { formatInstant } from '../../timestamp.ts';
import type { AuditEvent } from '../engine/audit.ts';
import type { Authority, Handler } from '../engine/execute.ts';
import { refusalIn } from '../engine/refusals.ts';
import type { UnitOfWork } from '../engine/unit-of-work.ts';
import { inviteId, tokenFingerprint } from './invites.ts';

const HOUR = 3_600_000;
/** Ids and keys in refused requests are whatever a stranger wrote. */
const MAX_AUDITED_LENGTH = 128;

export interface Join {
  readonly node: NodeClaim;
  readonly inviteToken: string;
  readonly validityHours: number;
}

/** Consumes the invite and issues the certificate in one transaction; the proof is judged before. */
export const join: Handler<Join> = (na, unit, { node, inviteToken, validityHours }) => {
  const scope = `join:${node.publicKey}`;
  const invite = inviteId(inviteToken);
  const event = {
    type: 'join' as const,
    at: unit.at,
    nodePublicKey: node.publicKey,
    keyCompromised: na.revocations.isCompromised(node.publicKey),
    proof: ledgerVerdict(na, scope, node, node.verdict),
  };
  const refused = refusalIn<InviteRefusal>(unit.send('invite', invite, event));
  if (refused !== null) refuseJoin(unit, node, scope, inviteToken, refused);
  unit.spend(na.nonces.spend(scope, node.nonce, unit.at));

  const { roles, maxValidityHours } = unit.existing('invite', invite);
  const { certId, json } = issue(na, unit, node, {
    roles,
    maxValidityHours,
    validityHours: Math.min(validityHours, maxValidityHours),
    renewedFrom: null,
  });
  unit.audit('certificate_issued', {
    cert_id: certId,
    node_public_key: node.publicKey,
    invite_token_fingerprint: tokenFingerprint(inviteToken),
    roles,
    remote_addr: node.remoteAddr,
  });
  return json;
};

function refuseJoin(
  unit: UnitOfWork,
  node: NodeClaim,
  scope: string,
  inviteToken: string,
  { refusal, reason }: Refused<InviteRefusal>,
): never {
  if (refusal === 'node_auth_failed') {
    auditFailedProof(unit, node, scope, reason ?? '');
  } else if (refusal === 'node_key_compromised') {
    unit.audit('join_rejected', {
      node_public_key: node.publicKey.slice(0, MAX_AUDITED_LENGTH),
      reason: refusal,
      invite_token_fingerprint: tokenFingerprint(inviteToken),
      remote_addr: node.remoteAddr,
    });
  }
  throw new Refusal(refusal);
}

export interface Heartbeat {
  readonly node: NodeClaim;
  readonly certId: string;
  readonly status: string;
}

/** Accepted heartbeats change memory only; they reach the disk with the next flush of liveness. */
export const heartbeat: Handler<Heartbeat> = (na, unit, { node, certId, status }) => {
  const event = {
    type: 'heartbeat' as const,
    at: unit.at,
    nodePublicKey: node.publicKey,
    proof: nodeProof(na, node),
  };
  const refused = refusalIn<CertificateRefusal>(unit.send('certificate', certId, event));
  if (refused !== null) refuseNode(na, unit, node, certId, 'heartbeat_rejected', refused);
  claimNonce(na, unit, node);
  na.liveness.touch(certId, { at: unit.at, status, remoteAddr: node.remoteAddr });
  na.liveness.noteSigned(certId, node.signedAt);
  return `{"ack":true,"server_time":"${formatInstant(unit.at)}"}`;
};

export interface Renew {
  readonly node: NodeClaim;
  readonly certId: string;
  readonly validityHours: number;
  /** Roles the node claims; null when it claims none. */
  readonly roles: readonly string[] | 'malformed' | null;
}

/** Issues a successor; roles and the cap on validity come from server state, never from the node. */
export const renew: Handler<Renew> = (na, unit, { node, certId, validityHours, roles }) => {
  const { renewalGrace } = na.settings;
  const scope = `node:${node.publicKey}`;
  const event = {
    type: 'renew' as const,
    at: unit.at,
    nodePublicKey: node.publicKey,
    proof: durableProof(na, scope, node),
    roles,
    supersededFrom: renewalGrace === null ? null : unit.at + renewalGrace,
  };
  const refused = refusalIn<CertificateRefusal>(unit.send('certificate', certId, event));
  if (refused !== null) refuseNode(na, unit, node, certId, 'renewal_rejected', refused);
  claimNonce(na, unit, node);
  na.liveness.noteSigned(certId, node.signedAt);
  unit.spend(na.nonces.spend(scope, node.nonce, unit.at));

  const old = unit.existing('certificate', certId);
  const renewed = issue(na, unit, node, {
    roles: old.roles,
    maxValidityHours: old.maxValidityHours,
    validityHours: Math.min(validityHours, old.maxValidityHours),
    renewedFrom: certId,
  });
  unit.whenCommitted(() => na.liveness.retire(certId));
  unit.audit('certificate_renewed', {
    old_cert_id: certId,
    new_cert_id: renewed.certId,
    node_public_key: node.publicKey,
  });
  return renewed.json;
};

/** The nonce is judged after the timestamp and before the signature (wire rules 3.1, checks 4 and 5). */
function nodeProof(na: Authority, node: NodeClaim): NodeProofVerdict {
  if (!reachesNonce(node.verdict)) return node.verdict;
  const verdict = na.windows.check(node.publicKey, node.nonce, node.signedAt);
  return verdict === 'fresh' ? node.verdict : verdict;
}

/** As `nodeProof`, for requests whose nonces are durable: those outlive the windows. */
export function durableProof(na: Authority, scope: string, node: NodeClaim): NodeProofVerdict {
  return ledgerVerdict(na, scope, node, nodeProof(na, node));
}

function ledgerVerdict(
  na: Authority,
  scope: string,
  node: NodeClaim,
  verdict: NodeProofVerdict,
): NodeProofVerdict {
  return reachesNonce(verdict) && na.nonces.isSpent(scope, node.nonce) ? 'nonce_replay' : verdict;
}

function reachesNonce(verdict: NodeProofVerdict): boolean {
  return verdict === 'valid' || verdict === 'invalid_signature';
}

export function claimNonce(na: Authority, unit: UnitOfWork, node: NodeClaim): void {
  na.windows.claim(node.publicKey, node.nonce, node.signedAt, unit.at);
}

function refuseNode(
  na: Authority,
  unit: UnitOfWork,
  node: NodeClaim,
  certId: string,
  event: AuditEvent,
  { refusal, reason }: Refused<CertificateRefusal>,
): never {
  if (refusal === 'node_auth_failed') {
    auditFailedProof(unit, node, `node:${node.publicKey}`, reason ?? '');
    throw new Refusal(refusal);
  }
  unit.audit(event, {
    cert_id: certId.slice(0, MAX_AUDITED_LENGTH),
    reason: reason ?? (refusal === 'unknown_certificate' ? 'certificate_not_found' : refusal),
    remote_addr: node.remoteAddr,
  });
  if (GENUINE.has(refusal)) {
    claimNonce(na, unit, node);
    na.liveness.noteSigned(certId, node.signedAt);
  }
  if (refusal === 'malformed_roles')
    throw new Refusal('request_validation_failed', ROLES_NOT_A_LIST);
  throw new Refusal(refusal);
}

/** Refusals that come after the proof: the request was genuine, so its nonce is used up. */
const GENUINE: ReadonlySet<CertificateRefusal> = new Set([
  'certificate_not_yet_valid',
  'certificate_expired',
  'certificate_superseded',
  'malformed_roles',
  'renewal_role_change_forbidden',
]);

const ROLES_NOT_A_LIST = {
  errors: [{ loc: ['body', 'roles'], msg: 'must be a list of strings', type: 'type' }],
};

export function auditFailedProof(
  unit: UnitOfWork,
  node: NodeClaim,
  scope: string,
  reason: string,
): void {
  unit.audit('node_auth_failed', {
    scope: scope.slice(0, MAX_AUDITED_LENGTH),
    reason,
    remote_addr: node.remoteAddr,
  });
}

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
): { certId: string; json: string } {
  const certId = na.runtime.uuid();
  const expiresAt = unit.at + validityHours * HOUR;
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
  const record = signRecord(
    {
      cert_id: certId,
      node_public_key: node.publicKey,
      network_name: na.settings.networkName,
      roles,
      issued_at: formatInstant(unit.at),
      expires_at: formatInstant(expiresAt),
      issued_by: na.settings.keyId,
    },
    na.signer,
    na.settings.keyId,
  );
  unit.whenCommitted(() =>
    na.liveness.touch(certId, {
      at: unit.at,
      status: renewedFrom === null ? 'joined' : 'renewed',
      remoteAddr: node.remoteAddr,
    }),
  );
  return { certId, json: jsonText(record) };
}

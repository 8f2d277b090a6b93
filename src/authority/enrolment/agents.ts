/** The agent registry (wire rules 4.6). */
import { createHash } from 'node:crypto';
import type { AgentRegistrationRefusal } from '../../../machines/agent-registration.ts';
import type { NodeClaim } from '../../contract/claims.ts';
import { canonicalJson, jsonText } from '../../json/write.ts';
import type { AgentDescriptor } from '../../records/agent-descriptor.ts';
import { instantOf } from '../../records/record.ts';
import { Refusal } from '../../refusal.ts';
import type { Authority, Handler } from '../engine/execute.ts';
import { refusalIn } from '../engine/refusals.ts';
import type { UnitOfWork } from '../engine/unit-of-work.ts';
import { auditFailedProof, claimNonce, durableProof } from './certificates.ts';

export interface RegisterAgent {
  readonly descriptor: AgentDescriptor;
  /** A signature of the descriptor verifies under the key inside it. */
  readonly signatureValid: boolean;
  /** The proof header, when it was sent in addition. */
  readonly node: NodeClaim | null;
  readonly remoteAddr: string;
}

export const registerAgent: Handler<RegisterAgent> = (na, unit, command) => {
  const { descriptor, signatureValid, node, remoteAddr } = command;
  const key = descriptor.node_public_key;
  if (node !== null) admitNode(na, unit, node);
  const refused = refusalIn<AgentRegistrationRefusal>(
    unit.send('agent-registration', key, {
      type: 'register',
      registration: {
        json: canonicalJson(descriptor),
        capabilities: descriptor.capabilities,
        registeredAt: instantOf(descriptor.registered_at),
        expiresAt: instantOf(descriptor.expires_at),
      },
      hasActiveCertificate: na.certificates.hasActive(key, unit.at),
      keyCompromised: na.revocations.isCompromised(key),
      signatureValid,
    }),
  );
  if (refused !== null) throw new Refusal(refused.refusal);
  unit.audit('agent_registered', {
    agent_id: descriptor.agent_id,
    node_public_key: key,
    remote_addr: remoteAddr,
  });
  return jsonText({ status: 'registered', expires_at: descriptor.expires_at });
};

export interface RemoveAgent {
  readonly nodePublicKey: string;
  /** The signed envelope, or the proof header that stands in for it. */
  readonly proof:
    | { readonly form: 'envelope'; readonly signature: string; readonly valid: boolean }
    | { readonly form: 'header'; readonly node: NodeClaim };
  readonly remoteAddr: string;
}

/** Each envelope works once, so that a recorded one cannot remove a later registration. */
export const removeAgent: Handler<RemoveAgent> = (na, unit, command) => {
  const { nodePublicKey: key, proof, remoteAddr } = command;
  const scope = `agent-delete:${key}`;
  if (proof.form === 'header') admitNode(na, unit, proof.node);
  // Base64 of a signature has one spelling here, but a digest keeps the ledger's entries short.
  const envelope = proof.form === 'envelope' ? digestOf(proof.signature) : '';
  evictExpired(unit, key);
  const refused = refusalIn<AgentRegistrationRefusal>(
    unit.send('agent-registration', key, {
      type: 'remove',
      signatureValid: proof.form === 'header' || proof.valid,
      replayed: envelope !== '' && na.nonces.isSpent(scope, envelope),
    }),
  );
  if (refused !== null) throw new Refusal(refused.refusal);
  if (envelope !== '') unit.spend(na.nonces.spend(scope, envelope, unit.at));
  unit.audit('agent_deregistered', { node_public_key: key, remote_addr: remoteAddr });
  return '{"status":"deregistered"}';
};

function digestOf(signature: string): string {
  return createHash('sha256').update(signature).digest('base64');
}

/** A proof header on an agent route: judged and claimed as on the other node routes, durably. */
function admitNode(na: Authority, unit: UnitOfWork, node: NodeClaim): void {
  const scope = `node:${node.publicKey}`;
  const verdict = durableProof(na, scope, node);
  if (verdict !== 'valid') {
    auditFailedProof(unit, node, scope, verdict);
    throw new Refusal('node_auth_failed');
  }
  claimNonce(na, unit, node);
  unit.spend(na.nonces.spend(scope, node.nonce, unit.at));
}

/**
 * Evicts what has expired, beside the flush of liveness. Queries store nothing: they only stop showing what
 * has expired, and leave its eviction to the next flush.
 */
export const evictAgents: Handler<null> = (na, unit) => {
  for (const key of na.agents.takeExpired(unit.at)) evictExpired(unit, key);
  return '{}';
};

function evictExpired(unit: UnitOfWork, key: string): void {
  const registered = unit.current('agent-registration', key)?.value === 'registered';
  if (registered) unit.send('agent-registration', key, { type: 'evict', at: unit.at });
}

export const countAgents: Handler<null> = (na, unit) => {
  na.agents.expire(unit.at);
  return `{"count":${na.agents.count()},"capability":null}`;
};

export const listAgents: Handler<{ readonly capability: string }> = (na, unit, { capability }) => {
  na.agents.expire(unit.at);
  const found = na.agents.withCapability(capability);
  const agents = found.map(({ json }) => json).join(',');
  return `{"count":${found.length},"capability":${jsonText(capability)},"agents":[${agents}]}`;
};

export const readAgent: Handler<{ readonly nodePublicKey: string }> = (na, unit, command) => {
  na.agents.expire(unit.at);
  const registration = na.agents.find(command.nodePublicKey);
  if (registration === undefined) throw new Refusal('agent_not_registered');
  return registration.json;
};

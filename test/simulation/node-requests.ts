/** Requests of nodes: each step becomes a signed request, the resulting call, and the expected outcomes. */
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { readAgentDescriptor } from '../../src/protocol/records/agent-descriptor.ts';
import { signRecord, soleSigner } from '../../src/protocol/records/signed-record.ts';
import { call } from './authority-calls.ts';
import type { Known, KnownInvite } from './known.ts';
import { type Proof, TOLERANCE } from './model/access.ts';
import { heartbeat, join, renew } from './model/enrollment.ts';
import { registerAgent, removeAgentByEnvelope, removeAgentByProof } from './model/recognition.ts';
import type { Made } from './model/state.ts';
import { pick } from './operator-requests.ts';
import { FORGER, NETWORK, NODES, type NodeRequest, signAsNode } from './requests.ts';
import type { Sent } from './sent.ts';
import { SESSION_PUBLIC_KEY } from './session-beats.ts';
import { learnSession } from './session-requests.ts';
import type { Request } from './steps.ts';
import type { World } from './world.ts';

type Step<Name extends Request['do']> = Extract<Request, { do: Name }>;

export function joinRequest(step: Step<'join'>, known: Known, world: World): Sent {
  const key = nodeOf(step.node);
  const invite = inviteFor(known, step.invite);
  const body = { invite_token: invite.token, validity_hours: step.hours };
  const signed = signAsNode(key, '/join', body, world.stamp(), step.flaw);
  return {
    label: `join of node ${step.node}`,
    isSigned: true,
    judge: (edgeNow) => (authority) =>
      call(authority, 'join', {
        node: signed.judge(edgeNow),
        invite_token: invite.token,
        validity_hours: step.hours,
        hostname: null,
      }),
    proof: signed.proof,
    predict: (moment) =>
      join(moment, { proof: signed.proof, inviteId: invite.id, validityHours: step.hours }),
    learn: (value, made, decidedAt) => {
      invite.isUsed = true;
      const certId = learnCertificate(value, made, known, key.publicKey);
      world.contacts.heardOf(certId, decidedAt, world.now);
    },
  };
}

export function heartbeatRequest(step: Step<'heartbeat'>, known: Known, world: World): Sent {
  const key = holderOf(known, step.node);
  const certId = certificateFor(known, key.publicKey, step.certificate);
  const body = { cert_id: certId, session_public_key: SESSION_PUBLIC_KEY };
  const signed = signAsNode(key, '/heartbeat', body, world.stamp(), step.flaw);
  return {
    label: `heartbeat of node ${step.node}`,
    isSigned: true,
    judge: (edgeNow) => (authority) =>
      call(authority, 'heartbeat', {
        node: signed.judge(edgeNow),
        cert_id: certId,
        status: 'healthy',
        bulletin: false,
        authority_keys_digest: null,
      }),
    proof: signed.proof,
    predict: (moment) => {
      noteUse(world, signed, certId);
      return heartbeat(moment, { proof: signed.proof, certId });
    },
    begun: () => world.contacts.mayBeHeardOf(certId, world.now),
    learn: (_value, _made, decidedAt) => {
      world.contacts.heardOf(certId, decidedAt, world.now);
      noteAccepted(world, signed, certId);
      learnSession({ certId, nodeKey: key.publicKey }, known, world);
    },
  };
}

export function renewRequest(step: Step<'renew'>, known: Known, world: World): Sent {
  const key = holderOf(known, step.node);
  const certId = certificateFor(known, key.publicKey, step.certificate);
  const held = known.certificates.find(({ id }) => id === certId)?.roles ?? [];
  const roles = { none: null, same: held, other: ['role:root'] }[step.roles];
  const body = { cert_id: certId, validity_hours: step.hours, roles };
  const signed = signAsNode(key, '/renew', body, world.stamp(), step.flaw);
  const { proof } = signed;
  return {
    label: `renewal of node ${step.node}`,
    isSigned: true,
    judge: (edgeNow) => (authority) =>
      call(authority, 'renew', {
        node: signed.judge(edgeNow),
        cert_id: certId,
        validity_hours: step.hours,
        roles,
      }),
    proof: signed.proof,
    predict: (moment) => {
      noteUse(world, signed, certId);
      return renew(moment, { proof, certId, validityHours: step.hours, roles });
    },
    begun: () => world.contacts.renewing(certId),
    learn: (value, made, decidedAt) => {
      const successor = learnCertificate(value, made, known, key.publicKey);
      world.contacts.renewed(certId);
      world.contacts.heardOf(successor, decidedAt, world.now);
      noteAccepted(world, signed, certId);
    },
  };
}

export function agentRequest(step: Step<'registerAgent'>, known: Known, world: World): Sent {
  const key = holderOf(known, step.node);
  const registeredAt = world.now - step.signedAgo;
  const expiresAt = registeredAt + step.seconds * 1000;
  const capability = `tool:${step.capability}`;
  const unsigned = readAgentDescriptor({
    agent_id: `agent-${step.node}`,
    node_public_key: key.publicKey,
    network_name: NETWORK,
    capabilities: [capability],
    endpoint: { host: 'node', port: 1 },
    registered_at: formatInstant(registeredAt),
    expires_at: formatInstant(expiresAt),
    metadata: {},
    signatures: [],
  });
  if (unsigned === null) throw new Error('The descriptor is not one');
  const descriptor = signRecord(unsigned, soleSigner(step.isForged ? FORGER : key, key.publicKey));
  const [signature] = descriptor.signatures;
  const isGenuine = verifySignature(
    key.publicKey,
    canonicalJson(descriptor, 'signatures'),
    signature?.sig ?? '',
  );
  const registration = {
    nodeKey: key.publicKey,
    descriptor: canonicalJson(descriptor),
    capability,
    registeredAt,
    expiresAt,
    isGenuine,
  };
  return {
    label: `agent of node ${step.node}`,
    isSigned: true,
    // The edge refuses descriptors that have expired or begin in the future ([core-4-6], check 4).
    judge: (edgeNow) =>
      edgeNow < registeredAt - TOLERANCE || edgeNow > expiresAt
        ? null
        : (authority) =>
            call(authority, 'registerAgent', {
              descriptor,
              signatureValid: isGenuine,
              node: null,
              remoteAddr: '192.0.2.3',
            }),
    predict: (moment) => [registerAgent(moment, registration)],
  };
}

export function agentRemoval(step: Step<'removeAgent'>, _known: Known, world: World): Sent {
  return step.form === 'proof' ? removalByProof(step, world) : removalByEnvelope(step, world);
}

function removalByProof(step: Step<'removeAgent'>, world: World): Sent {
  const key = nodeOf(step.node);
  const flaw = step.isForged ? 'forged' : 'none';
  const signed = signAsNode(key, '/agents', {}, world.stamp(), flaw);
  return {
    label: `removal of the agent of node ${step.node} by proof`,
    isSigned: true,
    judge: (edgeNow) => (authority) =>
      call(authority, 'removeAgent', {
        nodePublicKey: key.publicKey,
        node: signed.judge(edgeNow),
        envelope: null,
        remoteAddr: '192.0.2.3',
      }),
    proof: signed.proof,
    predict: (moment) => removeAgentByProof(moment, signed.proof),
    learn: () => noteAccepted(world, signed),
  };
}

function removalByEnvelope(step: Step<'removeAgent'>, world: World): Sent {
  const key = nodeOf(step.node);
  const signedAt = world.stamp().now;
  const text = `delete-agent|v1|${key.publicKey}|${formatInstant(signedAt)}`;
  const signature = (step.isForged ? FORGER : key).sign(text);
  const isGenuine = verifySignature(key.publicKey, text, signature);
  return {
    label: `removal of the agent of node ${step.node}`,
    isSigned: true,
    // The edge refuses envelopes that were not signed within the tolerance [core-4-6].
    judge: (edgeNow) =>
      Math.abs(edgeNow - signedAt) > TOLERANCE
        ? null
        : (authority) =>
            call(authority, 'removeAgent', {
              nodePublicKey: key.publicKey,
              node: null,
              envelope: { signature, signedAt, valid: isGenuine },
              remoteAddr: '192.0.2.3',
            }),
    predict: (moment) =>
      removeAgentByEnvelope(moment, { nodeKey: key.publicKey, isGenuine, signature, signedAt }),
  };
}

function nodeOf(index: number) {
  const node = NODES[index % NODES.length];
  if (node === undefined) throw new Error('There are no nodes');
  return node;
}

/** A node that has a certificate, if there is one. */
function holderOf({ certificates }: Known, index: number) {
  const holders = NODES.filter(({ publicKey }) =>
    certificates.some(({ nodeKey }) => nodeKey === publicKey),
  );
  return pick(holders, index) ?? nodeOf(index);
}

/** Usually an unused invite, sometimes any. */
function inviteFor({ invites }: Known, index: number): KnownInvite {
  const unused = invites.filter(({ isUsed }) => !isUsed);
  const list = index >= 6 ? invites : unused;
  return pick(list, index >= 6 ? index - 6 : index) ?? NO_INVITE;
}

const NO_INVITE: KnownInvite = { token: 'unknown', id: 'unknown', isUsed: false };

/** Usually one of the node's own certificates, sometimes anyone's. */
function certificateFor({ certificates }: Known, nodeKey: string, index: number): string {
  const own = certificates.filter((one) => one.nodeKey === nodeKey);
  const list = index === 7 || own.length === 0 ? certificates : own;
  return pick(list, index)?.id ?? 'unknown';
}

function learnCertificate(value: unknown, made: Made, known: Known, nodeKey: string): string {
  const { roles } = value as { readonly roles: readonly string[] };
  const id = made('certificate')[0] ?? '';
  known.certificates.push({ id, nodeKey, roles });
  return id;
}

function noteUse({ instants }: World, { proof }: NodeRequest, certId: string): void {
  if (proof.isGenuine) instants.mayBeUsed(usedBy(proof, certId));
}

function noteAccepted(world: World, { proof }: NodeRequest, certId: string | null = null): void {
  world.noteAccepted(`node:${proof.holder}`, proof.nonce);
  if (certId !== null) world.instants.accepted(usedBy(proof, certId));
}

function usedBy({ holder, signedAt }: Proof, certId: string) {
  return { certId, nodeKey: holder, instant: signedAt };
}

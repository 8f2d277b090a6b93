/** Requests of nodes, signed or in sessions, genuine or not: what is asked, and the expected outcomes. */
import fc from 'fast-check';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { NodeClaim } from '../../src/protocol/contract/claims.ts';
import { readAgentDescriptor } from '../../src/protocol/records/agent-descriptor.ts';
import { signRecord, soleSigner } from '../../src/protocol/records/signed-record.ts';
import { type CallName, type CallOf, call } from './authority-calls.ts';
import type { Sent } from './decisions.ts';
import {
  anyOf,
  byNode,
  isForged,
  late,
  MINUTE,
  node,
  pick,
  request,
  small,
  weighted,
} from './kinds.ts';
import { type Proof, TOLERANCE } from './model/access.ts';
import { signingNow } from './model/authority-keys.ts';
import { beatInSession, heartbeat, join, renew } from './model/enrollment.ts';
import { registerAgent, removeAgentByEnvelope, removeAgentByProof } from './model/recognition.ts';
import type { Made } from './model/state.ts';
import { type Flaw, FORGER, NETWORK, NODES, signAsNode } from './requests.ts';
import {
  type BeatFlaw,
  heartbeatOf,
  isOfSession,
  judgeBeat,
  makeBeat,
  openSession,
  SESSION_LASTS,
  SESSION_PUBLIC_KEY,
  type SessionHolder,
} from './session-beats.ts';
import { insist } from './violation.ts';
import type { KnownInvite, World } from './world.ts';

/** The instant of a heartbeat in a session, in milliseconds relative to now. */
const MADE_AT = {
  now: 0,
  earlier: -30_000,
  old: -TOLERANCE,
  ahead: TOLERANCE,
  stale: -TOLERANCE - 1,
  from_the_future: TOLERANCE + 1,
};

export const NODE_STEPS = {
  join: request(8, { ...byNode, invite: small, hours: anyOf(1, 2, 100) }, (step, world) => {
    const key = nodeAt(step.node);
    const { known, contacts } = world;
    const invite = inviteFor(world, step.invite);
    const body = { invite_token: invite.token, validity_hours: step.hours };
    const signed = signedBy(key, 'join', step.flaw, world, body, (node) => {
      return { node, ...body, hostname: null };
    });
    const { proof } = signed;
    return {
      ...signed,
      predict: (moment) => join(moment, { proof, inviteId: invite.id, validityHours: step.hours }),
      learn(value, made, decidedAt) {
        invite.isUsed = true;
        const certId = learnCertificate(value, made, known, key.publicKey);
        contacts.heardOf(certId, decidedAt, world.now);
      },
    };
  }),
  /** Requests a session. */
  heartbeat: request(8, { ...byNode, certificate: small }, (step, world) => {
    const key = holderAt(world, step.node);
    const certId = certificateFor(world, key.publicKey, step.certificate);
    const body = { cert_id: certId, session_public_key: SESSION_PUBLIC_KEY };
    const signed = signedBy(key, 'heartbeat', step.flaw, world, body, (node) =>
      heartbeatOf(node, certId),
    );
    const { proof } = signed;
    return {
      ...signed,
      predict(moment) {
        noteUse(world, proof, certId);
        return heartbeat(moment, { proof, certId });
      },
      begun: () => world.contacts.mayBeHeardOf(certId, world.now),
      learn(_value, _made, decidedAt) {
        world.contacts.heardOf(certId, decidedAt, world.now);
        noteAccepted(world, proof, certId);
        learnSession({ certId, nodeKey: key.publicKey }, world);
      },
    };
  }),
  beat: request(
    12,
    {
      session: small,
      instant: weighted<keyof typeof MADE_AT>(
        [8, 'now'],
        [3, 'earlier', 'old', 'ahead'],
        [1, 'stale', 'from_the_future'],
      ),
      flaw: weighted<BeatFlaw>(
        [8, 'none'],
        [1, 'certificate', 'node', 'end', 'instant', 'body', 'key'],
      ),
      late,
    },
    (step, world) => {
      const { contacts, known, process, proofs } = world;
      const { instants } = proofs;
      const session = pick(known.sessions, step.session);
      if (session === undefined) return undefined;
      const instant = world.now + MADE_AT[step.instant];
      const beat = makeBeat(session, { instant, flaw: step.flaw }, another(session, world));
      const { certId, nodeKey } = beat;
      const used = { certId, nodeKey, instant };
      const label = `heartbeat in session ${step.session} (${step.flaw}, ${step.instant})`;
      return {
        label,
        isSigned: true,
        // The edge itself refuses heartbeats that do not belong to the session.
        judge(edgeNow) {
          const node = judgeBeat(process.sessions, beat, edgeNow);
          const isWanted = isOfSession(beat, edgeNow, currentKey(world));
          insist(
            isWanted === (node.verdict === 'valid'),
            () => `${label}: ${node.verdict} at the edge instead of ${isWanted}`,
          );
          return isWanted
            ? (authority) => call(authority, 'heartbeat', heartbeatOf(node, certId))
            : null;
        },
        predict(moment) {
          const outcomes = beatInSession(moment, used, instants.verdict(moment, used));
          instants.mayBeUsedInSession(used);
          return outcomes;
        },
        begun: () => contacts.mayBeHeardOf(certId, world.now),
        learn(_value, _made, decidedAt) {
          contacts.heardOf(certId, decidedAt, world.now);
          instants.acceptedInSession(used);
        },
      };
    },
  ),
  renew: request(
    6,
    {
      ...byNode,
      certificate: small,
      hours: anyOf(1, 2, 100),
      roles: anyOf<'none' | 'same' | 'other'>('none', 'same', 'same', 'other'),
    },
    (step, world) => {
      const { known, contacts } = world;
      const key = holderAt(world, step.node);
      const certId = certificateFor(world, key.publicKey, step.certificate);
      const held = known.certificates.find(({ id }) => id === certId)?.roles ?? [];
      const roles = { none: null, same: held, other: ['role:root'] }[step.roles];
      const body = { cert_id: certId, validity_hours: step.hours, roles };
      const signed = signedBy(key, 'renew', step.flaw, world, body, (node) => ({ node, ...body }));
      const { proof } = signed;
      return {
        ...signed,
        predict(moment) {
          noteUse(world, proof, certId);
          return renew(moment, { proof, certId, validityHours: step.hours, roles });
        },
        begun: () => contacts.renewing(certId),
        learn(value, made, decidedAt) {
          const successor = learnCertificate(value, made, known, key.publicKey);
          contacts.renewed(certId);
          contacts.heardOf(successor, decidedAt, world.now);
          noteAccepted(world, proof, certId);
        },
      };
    },
  ),
};

export const AGENT_STEPS = {
  registerAgent: request(
    4,
    {
      node,
      isForged,
      signedAgo: anyOf(0, 0, MINUTE, 10 * MINUTE),
      seconds: anyOf(600, 7200),
      capability: fc.nat({ max: 1 }),
    },
    (step, world) => {
      const key = holderAt(world, step.node);
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
      const isGenuine = !step.isForged;
      const signer = soleSigner(isGenuine ? key : FORGER, key.publicKey);
      const descriptor = signRecord(unsigned, signer);
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
    },
  ),
  removeAgent: request(
    2,
    { node, form: anyOf<'envelope' | 'proof'>('envelope', 'proof'), isForged },
    (step, world) => {
      const key = nodeAt(step.node);
      return step.form === 'proof'
        ? removalByProof(key, step.isForged, world)
        : removalByEnvelope(key, step.isForged, world);
    },
  ),
};

/** `given` is what the edge forwards with its verdict. */
function signedBy<Name extends CallName>(
  key: Signer,
  name: Name,
  flaw: Flaw,
  world: World,
  body: JsonObject,
  given: (node: NodeClaim) => CallOf<Name>,
): Omit<Sent, 'predict'> & { readonly proof: Proof } {
  const { proof, judge } = signAsNode(key, `/${name}`, body, world.stamp(), flaw);
  return {
    label: `${name} of node ${NODES.indexOf(key)}`,
    isSigned: true,
    judge: (edgeNow) => (authority) => call(authority, name, given(judge(edgeNow))),
    proof,
  };
}

function removalByProof(key: Signer, isForged: boolean, world: World): Sent {
  const flaw = isForged ? 'forged' : 'none';
  const signed = signedBy(key, 'removeAgent', flaw, world, {}, (node) => ({
    nodePublicKey: key.publicKey,
    node,
    envelope: null,
    remoteAddr: '192.0.2.3',
  }));
  const { proof } = signed;
  return {
    ...signed,
    predict: (moment) => removeAgentByProof(moment, proof),
    learn: () => noteAccepted(world, proof),
  };
}

function removalByEnvelope(key: Signer, isForged: boolean, { now: signedAt }: World): Sent {
  const nodeKey = key.publicKey;
  const text = `delete-agent|v1|${nodeKey}|${formatInstant(signedAt)}`;
  const signature = (isForged ? FORGER : key).sign(text);
  const isGenuine = !isForged;
  return {
    label: `removal of the agent of node ${NODES.indexOf(key)}`,
    isSigned: true,
    // The edge refuses envelopes that were not signed within the tolerance [core-4-6].
    judge: (edgeNow) =>
      Math.abs(edgeNow - signedAt) > TOLERANCE
        ? null
        : (authority) =>
            call(authority, 'removeAgent', {
              nodePublicKey: nodeKey,
              node: null,
              envelope: { signature, signedAt, valid: isGenuine },
              remoteAddr: '192.0.2.3',
            }),
    predict: (moment) => removeAgentByEnvelope(moment, { nodeKey, isGenuine, signature, signedAt }),
  };
}

function nodeAt(index: number): Signer {
  const node = NODES[index % NODES.length];
  if (node === undefined) throw new Error('There are no nodes');
  return node;
}

/** A node that has a certificate, if there is one. */
function holderAt({ known: { certificates } }: World, index: number): Signer {
  const holders = NODES.filter(({ publicKey }) =>
    certificates.some(({ nodeKey }) => nodeKey === publicKey),
  );
  return pick(holders, index) ?? nodeAt(index);
}

/** Usually an unused invite, sometimes any. */
function inviteFor({ known: { invites } }: World, index: number): KnownInvite {
  const unused = invites.filter(({ isUsed }) => !isUsed);
  const found = index >= 6 ? pick(invites, index - 6) : pick(unused, index);
  return found ?? { token: 'unknown', id: 'unknown', isUsed: false };
}

/** Usually one of the node's own certificates, sometimes anyone's. */
function certificateFor({ known: { certificates } }: World, nodeKey: string, index: number) {
  const own = certificates.filter((one) => one.nodeKey === nodeKey);
  const list = index === 7 || own.length === 0 ? certificates : own;
  return pick(list, index)?.id ?? 'unknown';
}

function learnCertificate(
  value: unknown,
  made: Made,
  { certificates }: World['known'],
  nodeKey: string,
): string {
  const { roles } = value as { readonly roles: readonly string[] };
  const id = made('certificate')[0] ?? '';
  certificates.push({ id, nodeKey, roles });
  return id;
}

/** What a node learns from the answer to a signed heartbeat that requested a session. */
function learnSession(holder: SessionHolder, world: World): void {
  const { certId, nodeKey } = holder;
  const { known, now, process } = world;
  const asking = { certId, nodePublicKey: nodeKey };
  const offer = process.sessions.begin(asking, SESSION_PUBLIC_KEY, now);
  if (offer === null) throw new Error(`No session begins for ${certId}`);
  const session = openSession(offer, holder, currentKey(world));
  const isAsLong = session.expiresAt === now + SESSION_LASTS;
  insist(isAsLong, () => `A session ends at ${offer.expires_at}`);
  known.sessions.push(session);
}

function currentKey({ shown }: World): string {
  return signingNow(shown.authority).current;
}

/** The certificate and the node that a forged heartbeat names. */
function another(
  { certId, nodeKey }: SessionHolder,
  { known: { certificates } }: World,
): SessionHolder {
  return {
    certId: certificates.findLast(({ id }) => id !== certId)?.id ?? 'unknown',
    nodeKey: NODES.find(({ publicKey }) => publicKey !== nodeKey)?.publicKey ?? '',
  };
}

function noteUse({ proofs }: World, proof: Proof, certId: string): void {
  if (proof.isGenuine) proofs.instants.mayBeUsed(usedBy(proof, certId));
}

function noteAccepted({ proofs }: World, proof: Proof, certId: string | null = null): void {
  proofs.noteAccepted(`node:${proof.holder}`, proof.nonce);
  if (certId !== null) proofs.instants.accepted(usedBy(proof, certId));
}

function usedBy({ holder, signedAt }: Proof, certId: string) {
  return { certId, nodeKey: holder, instant: signedAt };
}

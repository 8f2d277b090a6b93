/**
 * Sessions as a node opens them, and heartbeats as the node, or someone without a session, would create them
 * [core-3-4].
 */
import { createHmac } from 'node:crypto';
import nacl from 'tweetnacl';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { jsonText } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { HeartbeatSessions } from '../../src/edge/auth/session.ts';
import type { SessionOffer } from '../../src/protocol/answers/enrollment.ts';
import type { NodeClaim } from '../../src/protocol/contract/claims.ts';
import type { CallOf } from './authority-calls.ts';
import { TOLERANCE } from './model/access.ts';
import { insist } from './violation.ts';

export interface SessionHolder {
  readonly certId: string;
  readonly nodeKey: string;
}

export interface KnownSession extends SessionHolder {
  /** The authority's key when the session began. */
  readonly authorityKey: string;
  readonly expiresAt: number;
  readonly key: Uint8Array;
}

/** Which part of a heartbeat is wrong. */
export type BeatFlaw = 'none' | 'certificate' | 'node' | 'end' | 'instant' | 'body' | 'key';

export interface MadeBeat extends SessionHolder {
  readonly session: KnownSession;
  readonly instant: number;
  readonly body: JsonObject;
  /** The body as it is sent. */
  readonly text: string;
  readonly header: string;
  readonly isGenuine: boolean;
}

export const SESSION_LASTS = 3_600_000;
const BOX_KEYS = nacl.box.keyPair.fromSecretKey(Buffer.alloc(32, 7));
export const SESSION_PUBLIC_KEY = base64(BOX_KEYS.publicKey);

export function openSession(
  offer: SessionOffer,
  holder: SessionHolder,
  authorityKey: string,
): KnownSession {
  const text = `mesh-na session box 1\n${offer.public_key}`;
  insist(
    verifySignature(authorityKey, text, offer.signature),
    () => `The session of ${holder.certId} is not signed by ${authorityKey}`,
  );
  const box = [offer.key_box, offer.nonce, offer.public_key].map((one) =>
    Buffer.from(one, 'base64'),
  );
  const [sealed, nonce, from] = box as [Buffer, Buffer, Buffer];
  const key = nacl.box.open(sealed, nonce, from, BOX_KEYS.secretKey);
  if (key === null) throw new Error(`The session of ${holder.certId} does not open`);
  return { ...holder, authorityKey, expiresAt: Date.parse(offer.expires_at), key };
}

/** Where the flaw is the certificate or the node, `other` is named instead of the holder. */
export function makeBeat(
  session: KnownSession,
  { instant, flaw }: { readonly instant: number; readonly flaw: BeatFlaw },
  other: SessionHolder,
): MadeBeat {
  const certId = flaw === 'certificate' ? other.certId : session.certId;
  const nodeKey = flaw === 'node' ? other.nodeKey : session.nodeKey;
  const body = { node_public_key: nodeKey, cert_id: certId, status: 'healthy' };
  const text = jsonText(body);
  const covered = {
    instant: formatInstant(flaw === 'instant' ? instant - 1 : instant),
    text: flaw === 'body' ? jsonText({ ...body, status: 'unwell' }) : text,
  };
  const key = flaw === 'key' ? Buffer.alloc(32) : session.key;
  const mac = createHmac('sha256', key)
    .update(`POST\n/heartbeat\n${covered.instant}\n${covered.text}`)
    .digest('base64');
  const end = formatInstant(session.expiresAt + (flaw === 'end' ? SESSION_LASTS : 0));
  const header = `v1 ${end} ${formatInstant(instant)} ${mac}`;
  const isMade = certId === session.certId && nodeKey === session.nodeKey && flaw !== 'end';
  const isGenuine = isMade && !['instant', 'body', 'key'].includes(flaw);
  return { session, certId, nodeKey, instant, body, text, header, isGenuine };
}

export function heartbeatOf(node: NodeClaim, certId: string): CallOf<'heartbeat'> {
  return {
    node,
    cert_id: certId,
    status: 'healthy',
    bulletin: false,
    authority_keys_digest: null,
  };
}

/** Judges as an edge does. */
export function judgeBeat(
  sessions: HeartbeatSessions,
  { nodeKey, body, text, header }: MadeBeat,
  now: number,
): NodeClaim {
  const given = { body, remoteAddr: '192.0.2.2', now };
  return sessions.judge(nodeKey, header, given, Buffer.from(text), TOLERANCE);
}

/** Whether the heartbeat belongs to the session and is on time, if this is the authority's current key. */
export function isOfSession(
  { session, instant, isGenuine }: MadeBeat,
  now: number,
  authorityKey: string,
): boolean {
  const isTimely = Math.abs(now - instant) <= TOLERANCE && now < session.expiresAt;
  return isGenuine && isTimely && session.authorityKey === authorityKey;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

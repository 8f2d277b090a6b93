/**
 * A node's side of heartbeat sessions [core-3-4]. Sessions are kept in memory only: a node that starts signs a heartbeat
 * anyway.
 */
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import nacl from 'tweetnacl';
import type { VerifySignature } from '../base/crypto/primitives.ts';
import type { SessionOffer } from '../protocol/answers/enrollment.ts';
import {
  beatText,
  type SessionName,
  sessionBoxText,
  sessionHeader,
} from '../protocol/heartbeat-session.ts';
import { decodeBase64, encodeBase64 } from './base64.ts';
import { verifyText } from './keys.ts';

interface Session extends SessionName {
  readonly lastsMs: number;
  readonly endsAt: number;
  readonly key: Uint8Array;
  /** How many heartbeats were made in it. */
  beats: number;
}

const KEY_BYTES = 32;
/** With this share of a session left, the next heartbeat is signed and asks for another. */
const SHARE_LEFT = 0.1;
const ASK_AGAIN_MS = 60_000;
/** Of a node whose heartbeats are further apart than this share of a session, sessions would cost more than they save. */
const LARGEST_GAP = 0.5;
/** If not even the first heartbeat of a session counts, something is wrong that another session does not mend. */
const GIVE_UP_MS = 600_000;

export interface HeartbeatSessionsOptions {
  /** Defaults to portable code; a native implementation is faster. */
  readonly verify?: VerifySignature;
}

/** The session of one node. Keep it for as long as the node runs, and pass it to each of its clients. */
export type HeartbeatSessions = ReturnType<typeof createHeartbeatSessions>;

export function createHeartbeatSessions({ verify = verifyText }: HeartbeatSessionsOptions = {}) {
  let session: Session | null = null;
  let asked: { readonly keys: nacl.BoxKeyPair; readonly at: number } | null = null;
  let replaceAt = -Infinity;
  let askAfter = -Infinity;
  let lastInstant = -Infinity;
  let lastBeat = -Infinity;

  return {
    /** Whether the next heartbeat with this certificate can be made in a session; otherwise sign it. */
    isOpen(certId: string, now: number): boolean {
      if (session === null || session.certId !== certId || now >= session.endsAt) return false;
      return now < replaceAt || now < askAfter;
    },
    /** The value of the header `X-Mesh-Session` for a body, while a session is open. */
    proof(body: string, now: number): string {
      if (session === null) throw new Error('There is no heartbeat session');
      const { expiresAt, key } = session;
      session.beats += 1;
      lastBeat = now;
      lastInstant = Math.max(now, lastInstant + 1);
      const instant = new Date(lastInstant).toISOString();
      const text = new TextEncoder().encode(`${beatText(instant)}${body}`);
      return sessionHeader({ expiresAt, instant, mac: encodeBase64(hmac(sha256, key, text)) });
    },
    /** Call for each signed heartbeat: its `session_public_key`, or null if it should not ask for a session. */
    ask(now: number): string | null {
      const gap = now - lastBeat;
      lastBeat = now;
      if (session !== null && gap > LARGEST_GAP * session.lastsMs) return null;
      // A clock that was set back does not put it off for longer.
      if (now < askAfter && askAfter - now <= GIVE_UP_MS) return null;
      askAfter = now + ASK_AGAIN_MS;
      asked = { keys: nacl.box.keyPair(), at: now };
      return encodeBase64(asked.keys.publicKey);
    },
    /** Takes the answer to the last `ask`. What the authority's key did not sign is ignored. */
    begin(
      offer: SessionOffer,
      node: Omit<SessionName, 'expiresAt'>,
      authorityKey: string,
      now: number,
    ): void {
      if (asked === null) return;
      const { keys, at } = asked;
      asked = null;
      const { public_key: publicKey, expires_at: expiresAt, signature } = offer;
      const key = opened(offer, keys.secretKey);
      const endsAt = Date.parse(expiresAt);
      if (key === null || !(endsAt > at)) return;
      if (!verify(authorityKey, sessionBoxText(publicKey), signature)) return;
      const lastsMs = endsAt - at;
      session = { ...node, expiresAt, lastsMs, endsAt, key, beats: 0 };
      replaceAt = endsAt - SHARE_LEFT * lastsMs;
      askAfter = -Infinity;
      // The signed heartbeat was made in this millisecond at the latest.
      lastInstant = now;
    },
    /** Call when the authority has answered `session_ended`. */
    ended(now: number): void {
      askAfter = session !== null && session.beats <= 1 ? now + GIVE_UP_MS : -Infinity;
      session = null;
    },
  };
}

/** The session key in the box; null if it is not for this key. */
function opened(offer: SessionOffer, secretKey: Uint8Array): Uint8Array | null {
  const box = decodeBase64(offer.key_box, nacl.box.overheadLength + KEY_BYTES);
  const nonce = decodeBase64(offer.nonce, nacl.box.nonceLength);
  const sender = decodeBase64(offer.public_key, nacl.box.publicKeyLength);
  if (box === null || nonce === null || sender === null) return null;
  return nacl.box.open(box, nonce, sender, secretKey);
}

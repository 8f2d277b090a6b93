/**
 * Heartbeat sessions [core-3-4]: an edge checks a heartbeat of a session with the secret that all sessions derive from,
 * so that nothing is kept for any of them. The authority checks the certificate and that the instant is new.
 */
import { timingSafeEqual } from 'node:crypto';
import { decodeBase64Into } from '../../base/crypto/base64.ts';
import { HMAC_BYTES, hmacSha256Into, LONGEST_HMAC_TEXT } from '../../base/crypto/hmac.ts';
import {
  BOX_KEY_BYTES,
  BOX_NONCE_BYTES,
  type BoxKeys,
  boxKeysFromSeed,
  sealBox,
} from '../../base/crypto/sealed-box.ts';
import type { Runtime } from '../../base/runtime.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { SessionOffer } from '../../protocol/answers/enrollment.ts';
import type { NodeClaim } from '../../protocol/contract/claims.ts';
import {
  type BeatProof,
  beatText,
  readSessionHeader,
  SESSION_BOX_LABEL,
  type SessionName,
  sessionText,
} from '../../protocol/heartbeat-session.ts';
import { judgeTimestamp, type ReceivedRequest } from './signed-request.ts';

/** What the current key of the authority gives all instances for sessions. */
export interface SessionSecret {
  /** 32 bytes. */
  readonly secret: Uint8Array;
  /** The signature by the authority's key about the X25519 key that derives from the secret, in base64. */
  readonly signature: string;
}

/** A heartbeat whose header claims a session. */
type SessionBeat = Pick<ReceivedRequest, 'body' | 'remoteAddr' | 'now'>;

/**
 * Beginning a session takes about as long as checking a signature, so this bounds the effort at a tenth of a thread:
 * if a whole fleet comes back at once, its heartbeats come first.
 */
const MOST_BEGUN_PER_SECOND = 2000;

const KEY_LENGTH = 44;
const MAX_CERT_ID_LENGTH = 128;

/** Scratch buffers. */
const TEXT = Buffer.alloc(LONGEST_HMAC_TEXT);
const SESSION_KEY = Buffer.alloc(HMAC_BYTES);
const MAC = Buffer.alloc(HMAC_BYTES);
const CLAIMED_MAC = Buffer.alloc(HMAC_BYTES);

export interface HeartbeatSessionsOptions {
  /** How long a session lasts, in milliseconds; null if there are none. */
  readonly lastsMs: number | null;
  readonly runtime: Runtime;
}

export type HeartbeatSessions = ReturnType<typeof createHeartbeatSessions>;

export function createHeartbeatSessions({ lastsMs, runtime }: HeartbeatSessionsOptions) {
  let current: (BoxKeys & { readonly secret: Buffer; readonly signature: string }) | null = null;
  let countingSince = -Infinity;
  let begun = 0;

  function mayBegin(): boolean {
    const now = runtime.elapsed();
    if (now - countingSince >= 1000) {
      countingSince = now;
      begun = 0;
    }
    begun += 1;
    return begun <= MOST_BEGUN_PER_SECOND;
  }

  /** Writes the key of a session into `SESSION_KEY`. */
  function deriveKey(secret: Buffer, session: SessionName): void {
    const length = TEXT.write(sessionText(session), 'utf8');
    hmacSha256Into(SESSION_KEY, secret, TEXT.subarray(0, length));
  }

  function isMade(
    nodePublicKey: string,
    certId: unknown,
    { expiresAt, instant, mac }: BeatProof,
    rawBody: Uint8Array,
  ): boolean {
    if (current === null || nodePublicKey.length !== KEY_LENGTH) return false;
    if (typeof certId !== 'string' || certId.length > MAX_CERT_ID_LENGTH) return false;
    if (!decodeBase64Into(CLAIMED_MAC, mac)) return false;
    deriveKey(current.secret, { nodePublicKey, certId, expiresAt });
    const start = TEXT.write(beatText(instant), 'utf8');
    TEXT.set(rawBody, start);
    hmacSha256Into(MAC, SESSION_KEY, TEXT.subarray(0, start + rawBody.byteLength));
    return timingSafeEqual(MAC, CLAIMED_MAC);
  }

  return {
    /** Uses this secret from now on, which ends all sessions of another one; null while there is none. */
    use(given: SessionSecret | null): void {
      if (given === null) {
        current = null;
        return;
      }
      const secret = Buffer.from(given.secret);
      current = { ...sessionBoxKeys(secret), secret, signature: given.signature };
    },
    judge(
      publicKey: string,
      header: string,
      { body, remoteAddr, now }: SessionBeat,
      rawBody: Uint8Array,
      toleranceMs: number,
    ): NodeClaim {
      const proof = readSessionHeader(header);
      const ends = proof === null ? null : judgeTimestamp(proof.expiresAt, now, Infinity);
      const made = proof === null ? null : judgeTimestamp(proof.instant, now, toleranceMs);
      const isCurrent = made?.verdict === 'current' && ends !== null && ends.signedAt > now;
      const isValid =
        proof !== null && isCurrent && isMade(publicKey, body.cert_id, proof, rawBody);
      return {
        publicKey,
        signedAt: made?.signedAt ?? 0,
        nonce: null,
        verdict: isValid ? 'valid' : 'session_ended',
        remoteAddr,
        identity: null,
      };
    },
    /** A session for a node whose signed heartbeat was accepted; null if none can begin now. */
    begin(
      node: Omit<SessionName, 'expiresAt'>,
      sessionKey: string,
      now: number,
    ): SessionOffer | null {
      if (current === null || lastsMs === null || !mayBegin()) return null;
      const expiresAt = formatInstant(now + lastsMs);
      const recipient = Buffer.alloc(BOX_KEY_BYTES);
      if (!decodeBase64Into(recipient, sessionKey)) return null;
      deriveKey(current.secret, { ...node, expiresAt });
      const nonce = runtime.randomBytes(BOX_NONCE_BYTES);
      const box = sealBox(SESSION_KEY, nonce, recipient, current.secretKey);
      return (
        box && {
          key_box: box.toString('base64'),
          nonce: nonce.toString('base64'),
          public_key: current.publicKey.toString('base64'),
          expires_at: expiresAt,
          signature: current.signature,
        }
      );
    },
  };
}

/** The X25519 keys that derive from the secret of all sessions. */
export function sessionBoxKeys(secret: Buffer): BoxKeys {
  const seed = Buffer.alloc(HMAC_BYTES);
  hmacSha256Into(seed, secret, Buffer.from(SESSION_BOX_LABEL));
  return boxKeysFromSeed(seed);
}

/**
 * Ed25519 in portable JavaScript (tweetnacl), as strict as the server [core-1-5]. The equation of RFC 8032 alone would
 * let anyone sign any text under a key of small order, and derive further signatures from one they have seen.
 */
import nacl from 'tweetnacl';

/** The prime of the field, and the order of the base point. */
const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;

const WITHOUT_SIGN = 2n ** 255n - 1n;

/** The y of the eight points of small order. */
const SMALL_ORDER = new Set([
  0n,
  1n,
  P - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

export interface KeyPair {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** The 64-byte signature over the bytes. */
  sign(bytes: Uint8Array): Uint8Array;
}

/** The keys of a 32-byte seed; the secret stays inside the closure. */
export function keyPairFromSeed(seed: Uint8Array): KeyPair {
  const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(seed);
  return { publicKey, sign: (bytes) => nacl.sign.detached(bytes, secretKey) };
}

/** Whether 64 bytes of signature over the bytes verify under 32 bytes of public key. */
export function verifyStrictly(key: Uint8Array, bytes: Uint8Array, signature: Uint8Array): boolean {
  return isStrict(key, signature) && nacl.sign.detached.verify(bytes, signature, key);
}

function isStrict(key: Uint8Array, signature: Uint8Array): boolean {
  const point = signature.subarray(0, 32);
  const scalar = littleEndian(signature.subarray(32));
  return isStrictPoint(key) && isStrictPoint(point) && scalar < L;
}

/** Whether an encoded point is reduced and of large order, whatever the sign of its x. */
function isStrictPoint(bytes: Uint8Array): boolean {
  const y = littleEndian(bytes) & WITHOUT_SIGN;
  return y < P && !SMALL_ORDER.has(y);
}

function littleEndian(bytes: Uint8Array): bigint {
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'));
  return BigInt(`0x${digits.reverse().join('')}`);
}

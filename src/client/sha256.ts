/** SHA-256 in portable JavaScript: WebCrypto's is asynchronous, and unavailable on pages served without TLS. */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Sha256 } from '../base/crypto/primitives.ts';

export const portableSha256: Sha256 = {
  bytes: (data) => sha256(typeof data === 'string' ? utf8ToBytes(data) : data),
  hex: (data) => bytesToHex(portableSha256.bytes(data)),
};

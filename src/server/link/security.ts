/** What both ends of the link agree on: a key that both can make, and fresh keys for each connection. */
import type { SecureContextOptions } from 'node:tls';

/** Node.js uses such keys with TLS 1.2 only; the exchange is that of Diffie and Hellman, so none can be read later. */
export const LINK_CIPHERS = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const satisfies SecureContextOptions;

export const LINK_IDENTITY = 'mesh-na';

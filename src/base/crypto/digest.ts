import { hash } from 'node:crypto';
import type { Sha256 } from './primitives.ts';

/** Lower-case hex SHA-256. Text is hashed as UTF-8. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** SHA-256. Text is hashed as UTF-8. */
export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', data, 'buffer');
}

/** Both functions, in the form that records need. */
export const SHA256: Sha256 = { bytes: sha256, hex: sha256Hex };

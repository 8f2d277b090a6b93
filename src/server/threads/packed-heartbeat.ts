/** Most messages between threads are heartbeats, so each is sent as a row of a flat list. */

import type { CallInput } from '../../protocol/contract/calls.ts';
import type { NodeProofVerdict } from '../../protocol/contract/claims.ts';

export const HEARTBEAT_ROW = 10;

export function packHeartbeat(
  list: unknown[],
  id: number,
  { node, cert_id, status, bulletin, authority_keys_digest }: CallInput<'heartbeat'>,
): void {
  const { publicKey, signedAt, nonce, verdict, remoteAddr } = node;
  list.push(id, cert_id, status, publicKey, signedAt, nonce, verdict, remoteAddr);
  list.push(bulletin, authority_keys_digest);
}

/** The command in the row that begins at `start`. */
export function unpackHeartbeat(list: readonly unknown[], start: number): CallInput<'heartbeat'> {
  return {
    cert_id: list[start + 1] as string,
    status: list[start + 2] as string,
    bulletin: list[start + 8] as boolean,
    authority_keys_digest: list[start + 9] as string | null,
    node: {
      publicKey: list[start + 3] as string,
      signedAt: list[start + 4] as number,
      nonce: list[start + 5] as string | null,
      verdict: list[start + 6] as NodeProofVerdict,
      remoteAddr: list[start + 7] as string,
      sending: null,
    },
  };
}

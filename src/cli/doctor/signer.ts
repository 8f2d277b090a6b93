/** Whether the signer signs, where one holds the key of the authority. */

import { verifySignature } from '../../base/crypto/ed25519.ts';
import { messageOf } from '../../base/error-message.ts';
import { systemRuntime } from '../../base/runtime.ts';
import type { KeySource } from '../../base/signer/authority-signer.ts';
import { connectSigner } from '../../base/signer/connection.ts';
import { CHALLENGE_BYTES } from '../../base/signer/protocol.ts';
import { type Finding, fine, wrong } from './finding.ts';

const CURE =
  'Start mesh-na signer there with the key of the authority, for the user or the group of the service';

export async function checkSigner(source: KeySource): Promise<Finding[]> {
  if (source.kind === 'seed') return [];
  const at = `The signer at unix:${source.address.path}`;
  try {
    const connection = await connectSigner({
      ...source.address,
      verify: verifySignature,
      nonce: () => systemRuntime.randomBytes(CHALLENGE_BYTES),
    });
    connection.end('it has shown that it signs');
    return [fine('signer', `${at} signs with the key of the authority`)];
  } catch (cause) {
    return [wrong('signer', `${at} does not sign: ${messageOf(cause)}`, CURE)];
  }
}

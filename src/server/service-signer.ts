/** The service's access to the authority keys; failures of a separate signer process are logged and counted. */

import { signerFromSeed } from '../base/crypto/ed25519.ts';
import type { Logger } from '../base/log/logger.ts';
import {
  type AuthoritySigner,
  createAuthoritySigner,
  heldHere,
  type KeyHolder,
} from '../base/signer/authority-signer.ts';
import type { Config } from './config/load.ts';
import type { Fatal } from './lifecycle/fatal.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';
import { startSignerThread } from './threads/signer-thread.ts';

export interface ServiceSignerOptions {
  readonly config: Pick<Config, 'keySource' | 'publicKey' | 'keyId'>;
  readonly logger: Logger;
  readonly metrics: Pick<AuthorityMetrics, 'signed'>;
  readonly fatal: Fatal;
  /** Monotonic milliseconds. */
  elapsed(): number;
}

/** Resolves when the signer is available; rejects with a one-sentence error. */
export async function openServiceSigner(options: ServiceSignerOptions): Promise<AuthoritySigner> {
  return createAuthoritySigner(await holderFor(options), options.config);
}

async function holderFor(options: ServiceSignerOptions): Promise<KeyHolder> {
  const { config, logger, metrics, fatal, elapsed } = options;
  const source = config.keySource();
  if (source.kind === 'seeds') return heldHere(signersHere);
  const who = `The signer at unix:${source.path}`;
  const address = { path: source.path, publicKeys: [config.publicKey] };
  return await startSignerThread(address, {
    available: () => logger.write('INFO', 'signer', `${who} signs`),
    unavailable: (problem) => logger.write('ERROR', 'signer', `${who} does not sign: ${problem}`),
    refused: (problem) => logger.write('ERROR', 'signer', `${who} refuses: ${problem}`),
    asked: metrics.signed,
    failed: (cause) => fatal('signer thread', cause),
    elapsed,
  });

  /** The next key may be created while the service runs. */
  function signersHere() {
    const now = config.keySource();
    return now.kind === 'seeds' ? now.seeds.map((seed) => signerFromSeed(Buffer.from(seed))) : [];
  }
}

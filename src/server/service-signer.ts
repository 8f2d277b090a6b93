/** The service's access to the authority key; failures of a separate signer process are logged and counted. */

import type { Logger } from '../base/log/logger.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import type { Config } from './config/load.ts';
import type { Fatal } from './lifecycle/fatal.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';
import { openSigner } from './threads/open-signer.ts';

export interface ServiceSignerOptions {
  readonly config: Pick<Config, 'keySource' | 'publicKey' | 'keyId'>;
  readonly logger: Logger;
  readonly metrics: Pick<AuthorityMetrics, 'signed'>;
  readonly fatal: Fatal;
  /** Monotonic milliseconds. */
  elapsed(): number;
}

/** Resolves when the signer is available; rejects with a one-sentence error. */
export function openServiceSigner(options: ServiceSignerOptions): Promise<AuthoritySigner> {
  const { config, logger, metrics, fatal, elapsed } = options;
  const source = config.keySource();
  if (source.kind === 'seed') return openSigner(source, config);
  const who = `The signer at unix:${source.address.path}`;
  return openSigner(source, config, {
    available: () => logger.write('INFO', 'signer', `${who} signs`),
    unavailable: (problem) => logger.write('ERROR', 'signer', `${who} does not sign: ${problem}`),
    refused: (problem) => logger.write('ERROR', 'signer', `${who} refuses: ${problem}`),
    asked: metrics.signed,
    failed: (cause) => fatal('signer thread', cause),
    elapsed,
  });
}

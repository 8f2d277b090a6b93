/**
 * Keeps the served TLS pair up to date with its files: a new pair is used once it has been checked, and the last good
 * one until then.
 */
import type { Logger } from '../log/logger.ts';
import { readTlsPair, type TlsFiles, type TlsPair } from './pair.ts';

export interface TlsReload {
  /** Reads the files and switches to the pair if it is new and valid. */
  check(): Promise<void>;
}

export interface TlsReloadOptions {
  /** The pair in use at the start. */
  readonly first: TlsPair;
  readonly logger: Logger;
  now(): number;
  /** Makes new connections use this pair, from when it resolves; rejects if some of them may not. */
  use(files: TlsFiles): Promise<void>;
  /** Called when the pair in use has changed. */
  used(pair: TlsPair): void;
}

export function createTlsReload({ first, logger, now, use, used }: TlsReloadOptions): TlsReload {
  let current = first;
  /** Files are read every few seconds: each problem is logged once. */
  let loggedProblem: string | null = null;

  function logProblem(problem: string): void {
    if (problem === loggedProblem) return;
    loggedProblem = problem;
    const until = new Date(current.notAfter).toISOString();
    const kept = `The previous pair stays in use; its certificate is valid until ${until}`;
    logger.write('ERROR', 'tls', `${problem}. ${kept}`);
  }

  return {
    async check() {
      try {
        const pair = readTlsPair(current, now());
        loggedProblem = null;
        if (pair.digest === current.digest) return;
        await use(pair);
        current = pair;
        used(pair);
        const until = new Date(pair.notAfter).toISOString();
        logger.write(
          'INFO',
          'tls',
          `New connections use the new certificate, valid until ${until}`,
        );
      } catch (cause) {
        logProblem(cause instanceof Error ? cause.message : String(cause));
      }
    },
  };
}

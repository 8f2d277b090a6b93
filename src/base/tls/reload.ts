/** Serves with the TLS pair that its files hold: a new one once it has been checked, the last good one until then. */
import type { Logger } from '../log/logger.ts';
import { readTlsPair, type TlsFiles, type TlsPair } from './pair.ts';

export interface TlsReload {
  /** Reads the files, and changes to the pair when it is new and good. */
  check(): Promise<void>;
}

export interface TlsReloadOptions {
  /** The pair that is served with. */
  readonly first: TlsPair;
  readonly logger: Logger;
  now(): number;
  /** New connections get this pair once it resolves; rejects when some of them may not. */
  use(files: TlsFiles): Promise<void>;
  /** The pair that is served with has changed. */
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
    const kept = `The pair before it stays in use; its certificate is valid until ${until}`;
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
          `New connections get the new certificate, valid until ${until}`,
        );
      } catch (cause) {
        logProblem(cause instanceof Error ? cause.message : String(cause));
      }
    },
  };
}

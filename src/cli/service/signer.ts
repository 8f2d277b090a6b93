/** `mesh-na signer`: holds the keys of an authority, and signs for it over a socket. */

import type { Command } from 'commander';
import { systemRuntime } from '../../base/runtime.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { awaitStop } from './stop-request.ts';

const SIGNER = [
  option('--key <file>', 'key file of the authority, which no other process needs to read', {
    required: true,
  }),
  option(
    '--next-key <file>',
    'key file of the next key, before and during a succession; afterward, of the previous key',
  ),
  option(
    '--listen <address>',
    'socket to listen on, such as unix:/run/mesh-na/signer.sock; everyone with access to it can have anything signed',
    { required: true },
  ),
  option('--group', 'give the group of the socket access, in addition to its owner'),
] as const;

export function addSignerCommand(program: Command): void {
  define(program, 'signer', {
    about: 'hold the key of an authority, and sign for it over a socket',
    asks: { options: [] },
    options: SIGNER,
    examples: [
      'mesh-na signer --key /etc/mesh-na/na.key --listen unix:/run/mesh-na/signer.sock',
      'mesh-na serve --signer unix:/run/mesh-na/signer.sock',
    ],
    run: serveSigner,
  });
}

/** How often it logs what it signed. */
const REPORT_MS = 1000;
const LAST_LINES_MS = 1000;

async function serveSigner({
  key,
  nextKey,
  listen,
  group = false,
}: OptionsIn<typeof SIGNER>): Promise<void> {
  const { signerFromSeed } = await import('../../base/crypto/ed25519.ts');
  const { readPrivateKey } = await import('../../base/keys/read-key.ts');
  const { createFatal } = await import('../../server/lifecycle/lifecycle.ts');
  const { createLogger } = await import('../../base/log/logger.ts');
  const { standardOutput } = await import('../../base/log/log-output.ts');
  const { socketPath } = await import('../../base/signer/protocol.ts');
  const { startSignerService } = await import('../../base/signer/service.ts');
  const path = socketPath(listen);
  if (path === null) {
    throw usageFailure(`--listen must be unix: and an absolute path, not ${listen}`);
  }
  const { requested } = awaitStop();
  const signerIn = (file: string) => signerFromSeed(onLocalFiles(() => readPrivateKey(file)));
  const signer = signerIn(key);
  const second = nextKey === undefined ? null : signerIn(nextKey);
  if (second?.publicKey === signer.publicKey) {
    throw usageFailure(`${nextKey} holds the same key as ${key}: name the file of the next key`);
  }
  const destination = standardOutput(process.stdout);
  const logger = createLogger({
    level: 'INFO',
    format: 'text',
    destination,
    now: systemRuntime.now,
  });
  const tally = createTally(second !== null);
  const fatal = createFatal({
    logger,
    folder: null,
    silence: () => Promise.resolve(),
    end: () => void destination.flush(LAST_LINES_MS).then(() => process.exit(EXIT.failed)),
  });
  // Unhandled rejections arrive here too.
  process.on('uncaughtException', (cause) => fatal('uncaught exception', cause));
  const service = await startSignerService({
    path,
    isForGroup: group,
    signer,
    second,
    signed: tally.signed,
    misused: tally.misused,
  }).catch((cause: Error) => {
    throw failure(EXIT.unusable, 'local_files', cause.message);
  });
  function report(): void {
    for (const { level, sentence } of tally.take()) logger.write(level, 'signer', sentence);
  }
  const reporting = setInterval(report, REPORT_MS);
  const also = second === null ? '' : ` and the key ${second.publicKey}`;
  const keys = `the key ${signer.publicKey}${also}`;
  logger.write('INFO', 'signer', `Signing at unix:${path} with ${keys}`);
  logger.write('INFO', 'signer', `${await requested}: stopping`);
  clearInterval(reporting);
  await service.close();
  report();
  await destination.flush(LAST_LINES_MS);
}

interface Line {
  readonly level: 'INFO' | 'WARNING';
  readonly sentence: string;
}

/** Limits the log to one line per kind and second, and per key if there are two. */
function createTally(namesKeys: boolean) {
  const signed = new Map<string, { texts: number; bytes: number }>();
  const misuses = new Map<string, number>();
  return {
    signed(kind: string, bytes: number, publicKey: string): void {
      // The authority checks several times a minute that the signer is available.
      if (kind === 'challenge') return;
      const what = namesKeys ? `${kind} with ${publicKey}` : kind;
      const before = signed.get(what) ?? { texts: 0, bytes: 0 };
      signed.set(what, { texts: before.texts + 1, bytes: before.bytes + bytes });
    },
    misused(problem: string): void {
      misuses.set(problem, (misuses.get(problem) ?? 0) + 1);
    },
    /** Returns what happened since the last call. */
    take(): Line[] {
      const lines: Line[] = [
        ...[...signed].map(([what, { texts, bytes }]) => {
          return { level: 'INFO', sentence: `Signed ${what}: ${texts}, bytes: ${bytes}` } as const;
        }),
        ...[...misuses].map(([problem, times]) => {
          return { level: 'WARNING', sentence: `${problem}: connections ended: ${times}` } as const;
        }),
      ];
      signed.clear();
      misuses.clear();
      return lines;
    },
  };
}

/** `mesh-na console`: pages for an operator, served by this machine to its own browser. */

import { spawn } from 'node:child_process';
import { fstatSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { systemRuntime } from '../../base/runtime.ts';
import { createOperatorClient } from '../../client/operator-client.ts';
import { createPublicClient } from '../../client/public-client.ts';
import type { Connection } from '../../console/context.ts';
import { OPERATOR, type OperatorOptions, operatorSigning } from '../connection/operator.ts';
import { DEFAULT_PROFILE } from '../connection/profiles.ts';
import { httpFetch } from '../connection/server.ts';
import { remoteFindings } from '../doctor/commands.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { type Addressee, EXIT, explained, failure, outcomeOf } from '../kernel/errors.ts';
import { HIGHEST_PORT, wholeNumber } from '../kernel/options.ts';
import { printResult } from '../kernel/output.ts';
import { isTerminal } from '../kernel/terminal.ts';
import { awaitStop } from '../service/stop-request.ts';

const CONSOLE = [
  option('--port <port>', 'port on 127.0.0.1 and ::1; 0 for any free one', {
    fallback: 0,
    parse: wholeNumber(HIGHEST_PORT, 0),
  }),
  option('--no-open', 'only print the address instead of opening it in the browser'),
  option('--read-only', 'offer no changes'),
] as const;

type ConsoleOptions = OptionsIn<typeof CONSOLE> & OperatorOptions & { readonly open: boolean };

export function addConsoleCommand(program: Command): void {
  define(program, 'console', {
    about: "serve pages for an operator to this machine's browser, until interrupted (standard)",
    asks: OPERATOR,
    options: CONSOLE,
    examples: ['mesh-na console', 'mesh-na console --profile b --read-only'],
    run: (_, __, command) => runConsole(command.opts<ConsoleOptions>()),
  });
}

/** A page waits this long for the authority, and then says that there is no answer; the operator loads it again. */
const TIMEOUT_MS = 10_000;
const CHECK_MS = 60_000;

async function runConsole(options: ConsoleOptions): Promise<void> {
  const { startConsole } = await import('../../console/server.ts');
  const { requested } = awaitStop();
  const running = await startConsole({
    connection: connectionOf(options),
    isReadOnly: options.readOnly === true,
    port: options.port,
    runtime: systemRuntime,
  }).catch((cause: Error) => {
    throw failure(EXIT.unusable, 'start_refused', `The console cannot listen: ${cause.message}`);
  });
  printResult(options, { url: running.url }, [
    `The console is at ${running.url}`,
    'The address works once, in one browser. Interrupt this command to stop the console.',
  ]);
  const opened = options.open && isTerminal() ? openInBrowser(running.url) : null;
  let checking: NodeJS.Timeout | undefined;
  const idle = new Promise<void>((resolve) => {
    checking = setInterval(async () => {
      if (await running.stopIfIdle()) resolve();
    }, CHECK_MS);
  });
  await Promise.race([requested, idle, inputEnded()]);
  clearInterval(checking);
  if (opened !== null) rmSync(opened, { recursive: true, force: true });
  await running.stop();
  process.stdin.destroy();
}

function connectionOf(options: ConsoleOptions): Connection {
  const { url, ca } = options;
  const { keyId, audience, key } = operatorSigning(options);
  const server = { url, fetch: httpFetch(ca), timeoutMs: TIMEOUT_MS, retries: 0 };
  const addressee = { url, audience, publicClient: createPublicClient(server) };
  return {
    ...addressee,
    keyId,
    checks: () => remoteFindings({ url, ...(ca !== undefined && { ca }) }),
    operatorClient: (changed) =>
      createOperatorClient({ ...server, keyId, audience, key, ...changed }),
    problemOf: (error) => problemSentence(error, addressee),
    commandLine: (words) => ['mesh-na', ...words, ...placeOf(options)].map(shellWord).join(' '),
  };
}

/** If the message says how long to wait, that is the whole cure. */
export async function problemSentence(error: unknown, addressee: Addressee): Promise<string> {
  const { message, cure, mayWait = false } = outcomeOf(await explained(error, addressee));
  return cure && !mayWait ? `${message}. ${cure}` : message;
}

/** The options that lead another command to the same authority, with the same key. */
function placeOf(options: ConsoleOptions): string[] {
  const { profile, authorityKey, url, ca, keyId, keyFile, dataDir, agentSigner, agentKey } =
    options;
  const agent = [
    ...(agentSigner === undefined ? [] : ['--agent']),
    ...(agentKey === undefined ? [] : ['--agent-key', agentKey]),
  ];
  // Without a data folder, the default profile is used.
  if (authorityKey !== undefined) return ['--profile', profile ?? DEFAULT_PROFILE, ...agent];
  return [
    ...['--url', url, '--key-id', keyId],
    ...(keyFile === undefined ? ['--data-dir', dataDir] : ['--key-file', keyFile]),
    ...agent,
    ...(ca === undefined ? [] : ['--ca', ca]),
  ];
}

/** The text as one word for a POSIX shell. */
function shellWord(word: string): string {
  return /^[\w./:@=+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * Other users see the arguments of a program, so the browser gets a file that only this user can read, and which
 * leads to the address with the token.
 */
function openInBrowser(url: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-console-'));
  const file = join(folder, 'console.html');
  const text = `<!doctype html><meta http-equiv="refresh" content="0; url=${url}"><a href="${url}">Open the console</a>\n`;
  writeFileSync(file, text, { mode: 0o600 });
  const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const started = spawn(opener, [file], { stdio: 'ignore', detached: true });
  // The address was printed, too.
  started.on('error', () => undefined);
  started.unref();
  return folder;
}

/** The end of a pipe that started the console. A terminal sends a signal instead, and may not be read in the background. */
function inputEnded(): Promise<void> {
  const input = fstatSync(0);
  if (!input.isFIFO() && !input.isSocket()) return new Promise(() => undefined);
  return new Promise((resolve) => {
    process.stdin
      .resume()
      .once('end', resolve)
      .once('error', () => resolve());
  });
}

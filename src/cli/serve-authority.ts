/** Runs the authority in this process, from the settings to the last log line. */
import type { Command } from 'commander';
import { type RunningAuthority, startAuthority } from '../boot.ts';
import { type Config, loadConfig } from '../config/load.ts';
import { type Flags, OPTIONS } from '../config/options.ts';
import { type LogOutput, standardOutput } from '../log/log-output.ts';
import { problemText } from '../log/problem.ts';
import { systemRuntime } from '../runtime.ts';
import { startEdgeThread } from '../threads/edge-threads.ts';
import { startWatchdog } from '../threads/watchdog.ts';
import type { CommandReference } from '../views/command-reference.ts';
import { commandReference } from './command-reference.ts';
import { EXIT, type ExitCode, failure, onLocalFiles } from './exit-codes.ts';
import { makeNetwork } from './init.ts';
import { finishInterruptedInit, isUnused } from './init-network.ts';
import { printResult } from './output.ts';
import { packageVersion } from './version.ts';

export interface ServeOptions extends Flags {
  readonly create?: boolean;
  readonly networkName: string;
  readonly json?: boolean;
}

/**
 * The default announcement of a stop: long enough for most load balancers to notice, and short enough that
 * requests in flight finish within the ten seconds that containers have.
 */
const ANNOUNCE_MS = 3000;

export async function serveAuthority(options: ServeOptions, command: Command): Promise<void> {
  // Before anything is served, so that no signal ends the process uncleanly.
  const stop = awaitStop();
  const dataDir = options.dataDir ?? process.env.MESH_DATA_DIR ?? OPTIONS.dataDir.fallback;
  const unused = onLocalFiles(() => {
    finishInterruptedInit(String(dataDir));
    return isUnused(String(dataDir));
  });
  if (options.create && unused) {
    await makeNetwork({ dataDir: String(dataDir), networkName: options.networkName });
  }
  const config = onLocalFiles(() => loadConfig(options, process.env, systemRuntime.now()));
  const destination = standardOutput(process.stdout);
  const commands = commandReference(command.parent ?? command);
  const authority = await start(config, destination, commands);
  // Unhandled rejections arrive here too.
  process.on('uncaughtException', (cause) => authority.fatal('uncaught exception', cause));
  announce(config, authority, options);
  const { logger } = authority;
  logger.write('INFO', 'server', `${await stop.requested}: finishing what is in flight`);
  const announceMs = config.drain ?? (process.stdout.isTTY ? 0 : ANNOUNCE_MS);
  await authority.stop({ announceMs, hurry: stop.hurry });
  logger.write('INFO', 'server', 'Stopped');
  await endProcess(EXIT.done, destination);
}

/** How long writing the last log lines may take. */
const LAST_LINES_MS = 1000;

async function endProcess(code: ExitCode, destination: LogOutput): Promise<void> {
  await destination.flush(LAST_LINES_MS);
  // Node.js waits for writes to files when it exits, and this one may never end.
  if (destination.isStuck()) process.kill(process.pid, 'SIGKILL');
  process.exit(code);
}

interface StopRequest {
  /** The first stop signal. */
  readonly requested: Promise<NodeJS.Signals>;
  /** Aborted by the second stop signal. */
  readonly hurry: AbortSignal;
}

function awaitStop(): StopRequest {
  const hurry = new AbortController();
  const requested = new Promise<NodeJS.Signals>((resolve) => {
    let isRequested = false;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (isRequested) hurry.abort();
        isRequested = true;
        resolve(signal);
      });
    }
  });
  // Without a listener, Node.js opens its inspector, which gives anyone on this machine control.
  process.on('SIGUSR1', () => undefined);
  return { requested, hurry: hurry.signal };
}

async function start(
  config: Config,
  destination: LogOutput,
  commands: CommandReference,
): Promise<RunningAuthority> {
  try {
    return await startAuthority(config, {
      runtime: systemRuntime,
      manualTime: null,
      destination,
      startThread: startEdgeThread,
      startWatchdog,
      listThreadFrom: null,
      version: packageVersion(),
      commands,
      droppedLogLines: destination.droppedLines,
      onFatal(cause) {
        // The log itself may be broken.
        if (destination.droppedLines() > 0) process.stderr.write(`${problemText(cause)}\n`);
        void endProcess(EXIT.failed, destination);
      },
    });
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw failure(EXIT.unusable, 'start_refused', message);
  }
}

function announce(config: Config, { port, logger }: RunningAuthority, options: ServeOptions): void {
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;
  const url = `http://${host}:${port}`;
  const { network_name } = config.genesis;
  logger.write('INFO', 'server', `Network ${network_name} is served on ${url}`);
  if (!options.json) return;
  const { publicKey } = config.signer;
  printResult(options, { url, port, network_name, na_public_key: publicKey, pid: process.pid }, []);
}

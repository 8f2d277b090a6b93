/** Runs the authority in this process, from reading the settings to the last log line. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { messageOf, problemText } from '../../base/error-message.ts';
import { type LogOutput, openLogFile, standardOutput } from '../../base/log/log-output.ts';
import { createLogger, type Logger } from '../../base/log/logger.ts';
import { systemAfter, systemRuntime } from '../../base/runtime.ts';
import type { CommandReference } from '../../pages/reference/cli-reference.ts';
import { type RunningAuthority, startAuthority } from '../../server/boot.ts';
import { bringsIdentity, type Config, checkConfig, loadConfig } from '../../server/config/load.ts';
import type { Environment, Flags } from '../../server/config/options.ts';
import { readSettings } from '../../server/config/settings.ts';
import { createFatal } from '../../server/lifecycle/lifecycle.ts';
import { startWatchdog } from '../../server/threads/beats.ts';
import { startEdgeThread } from '../../server/threads/edge-threads.ts';
import { commandReference, variablesOf } from '../command-reference.ts';
import { removeAddress, saveAddress } from '../connection/server.ts';
import { EXIT, type ExitCode, failure, onLocalFiles } from '../kernel/errors.ts';
import { printResult } from '../kernel/output.ts';
import { packageVersion } from '../version.ts';
import { makeNetwork, summaryText } from './init.ts';
import { finishInterruptedInit, type InitSummary, useOf } from './init-network.ts';
import { awaitStop } from './stop-request.ts';

export interface ServeOptions extends Flags {
  readonly check?: boolean;
  readonly create?: boolean;
  readonly networkName: string;
  readonly json?: boolean;
}

/**
 * How long a stop is announced by default: long enough for most load balancers to notice, and short enough that
 * requests in flight finish within the ten seconds that containers get.
 */
const ANNOUNCE_MS = 3000;

export async function serveAuthority(options: ServeOptions, command: Command): Promise<void> {
  if (options.check) return checkOnly(options, command.parent ?? command);
  // Set up first, so that no signal ends the process uncleanly.
  let reload = (): void => undefined;
  const stop = awaitStop(() => reload());
  const created = await createIfAsked(options, process.env);
  const program = command.parent ?? command;
  const config = onLocalFiles(() =>
    loadConfig(options, process.env, systemRuntime.now(), variablesOf(program)),
  );
  await assertRecipients(config);
  const { output, reopen } = await openLog(config, options);
  const commands = commandReference(program);
  let fatal = beforeItServes(config, output);
  // Unhandled rejections arrive here too.
  process.on('uncaughtException', (cause) => fatal('uncaught exception', cause));
  const authority = await start(config, output, commands);
  const { logger } = authority;
  fatal = authority.fatal;
  reload = () => reloadFiles(authority, config, reopen);
  announce(config, authority, options, created);
  void notifyManager('ready', process.env, logger);
  const reason = await stop.requested;
  removeAddress(config.dataDir);
  logger.write('INFO', 'server', `${reason}: finishing requests in flight`);
  const notified = notifyManager('stopping', process.env, logger);
  const announceMs = config.drain ?? (process.stdout.isTTY ? 0 : ANNOUNCE_MS);
  await authority.stop({ announceMs, hurry: stop.hurry });
  await notified;
  logger.write('INFO', 'server', 'Stopped');
  await endProcess(EXIT.done, output);
}

/** Names every problem of the settings; nothing is opened for writing, and no port is opened. */
async function checkOnly(options: ServeOptions, program: Command): Promise<void> {
  const now = systemRuntime.now();
  const checked = checkConfig(options, process.env, now, variablesOf(program));
  const unfit = checked.config && (await recipientsProblem(checked.config));
  const problems = [...checked.problems, ...(unfit ?? [])];
  const warnings = checked.config?.warnings ?? [];
  const lines = [...problems, ...warnings.map((text) => `Warning: ${text}`)];
  const verdict = problems.length === 0 ? ['The settings are valid.'] : [];
  printResult(options, { problems, warnings }, [...lines, ...verdict]);
  if (problems.length > 0) throw failure(EXIT.unusable, 'local_files', '');
}

async function assertRecipients(config: Config): Promise<void> {
  const [problem] = await recipientsProblem(config);
  if (problem !== undefined) throw failure(EXIT.unusable, 'local_files', problem);
}

/** Loads the library only if needed, because it is slow to load and most services do not encrypt. */
async function recipientsProblem({ backups }: Config): Promise<string[]> {
  if (backups === null || backups.recipients.length === 0) return [];
  const { encryptionFor } = await import('../../maintenance/backup/encryption.ts');
  try {
    await encryptionFor(backups.recipients);
    return [];
  } catch (cause) {
    return [messageOf(cause)];
  }
}

/** Returns the created network, if any. */
async function createIfAsked(
  { create = false, networkName, json = false, ...flags }: ServeOptions,
  environment: Environment,
): Promise<InitSummary | null> {
  const { dataDir, setting } = readSettings(flags, environment);
  const use = onLocalFiles(() => {
    finishInterruptedInit(dataDir);
    return useOf(dataDir);
  });
  if (!create || use === 'network') return null;
  if (use !== 'absent' && bringsIdentity(setting)) return null;
  if (typeof use === 'object') {
    const message = `The data folder ${dataDir} contains other files, such as ${use.holds}, so no network was created there; choose another folder with --data-dir`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  const summary = await makeNetwork({ dataDir, networkName });
  if (!json) printResult({}, summary, summaryText(summary, dataDir));
  return summary;
}

interface OpenLog {
  readonly output: LogOutput;
  /** Null for a standard stream, which cannot be reopened. */
  readonly reopen: (() => Promise<void>) | null;
}

async function openLog({ logFile }: Config, { json = false }: ServeOptions): Promise<OpenLog> {
  // The reader may close the stream after the single object.
  if (json) process.stdout.removeAllListeners('error').on('error', () => undefined);
  if (logFile === null) {
    return { output: standardOutput(json ? process.stderr : process.stdout), reopen: null };
  }
  try {
    const file = await openLogFile(logFile);
    return { output: file, reopen: file.reopen };
  } catch (cause) {
    throw failure(EXIT.unusable, 'local_files', messageOf(cause));
  }
}

/** Reopens the log file and reads the TLS files, as other daemons do on SIGHUP. */
function reloadFiles(
  { logger, runJob }: RunningAuthority,
  { tls }: Config,
  reopen: OpenLog['reopen'],
): void {
  if (reopen !== null) void reopenLog(reopen, logger);
  if (tls !== null) {
    logger.write(
      'INFO',
      'server',
      'SIGHUP: reading the TLS files; a change or a new problem is logged',
    );
    void runJob('tls_reload');
  }
  if (reopen === null && tls === null) logger.write('INFO', 'server', NOTHING_TO_RELOAD);
}

const NOTHING_TO_RELOAD =
  'SIGHUP: nothing to reload, because there is neither a log file nor TLS; other settings need a restart';

async function reopenLog(reopen: () => Promise<void>, logger: Logger): Promise<void> {
  try {
    await reopen();
    logger.write('INFO', 'server', 'SIGHUP: reopened the log file');
  } catch (cause) {
    const problem = `${messageOf(cause)}. Logging continues to the previous file`;
    logger.write('ERROR', 'server', problem);
  }
}

/** How long writing the last log lines may take. */
const LAST_LINES_MS = 1000;

async function endProcess(code: ExitCode, destination: LogOutput): Promise<void> {
  await destination.flush(LAST_LINES_MS);
  // Node.js waits for file writes on exit, and this one may never end.
  if (destination.isStuck()) process.kill(process.pid, 'SIGKILL');
  process.exit(code);
}

function endFailed(cause: unknown, destination: LogOutput): void {
  // The log itself may be broken.
  if (destination.droppedLines() > 0) process.stderr.write(`${problemText(cause)}\n`);
  void endProcess(EXIT.failed, destination);
}

function beforeItServes({ log }: Config, destination: LogOutput) {
  const logger = createLogger({ ...log, destination, now: systemRuntime.now });
  const silence = () => Promise.resolve();
  const end = (cause: unknown) => endFailed(cause, destination);
  return createFatal({ logger, folder: null, silence, end });
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
      after: systemAfter,
      destination,
      startThread: startEdgeThread,
      startWatchdog,
      listThreadFrom: null,
      version: packageVersion(),
      commands,
      droppedLogLines: destination.droppedLines,
      onFatal: (cause) => endFailed(cause, destination),
    });
  } catch (cause) {
    // What could not be ended in time must not keep the process once the cause is printed.
    setTimeout(() => process.exit(), LAST_LINES_MS).unref();
    throw failure(EXIT.unusable, 'start_refused', messageOf(cause));
  }
}

function announce(
  config: Config,
  { port, logger, key }: RunningAuthority,
  options: ServeOptions,
  created: InitSummary | null,
): void {
  const { host } = config.edge;
  const shown = host.includes(':') ? `[${host}]` : host;
  const url = `${config.tls === null ? 'http' : 'https'}://${shown}:${port}`;
  const { network_name, network_version } = config.genesis;
  logger.write('INFO', 'server', `Network ${network_name} is served on ${url}`);
  saveAddress(config.dataDir, url);
  if (!options.json) return;
  const served = {
    url,
    port,
    network_name,
    network_version,
    na_public_key: key.publicKey,
    key_id: key.keyId,
    operator_key_ids: config.operators.map(({ keyId }) => keyId),
    data_dir: config.dataDir,
    log_file: config.logFile,
    threads: config.threads,
    version: packageVersion(),
    pid: process.pid,
    created,
  };
  printResult(options, served, []);
}

const run = promisify(execFile);

/** Ample for a program that sends one message. */
const TIMEOUT_MS = 10_000;

const MESSAGES = { ready: 'READY=1', stopping: 'STOPPING=1' };

type ServiceState = keyof typeof MESSAGES;

/**
 * Notifies systemd of the state of the service through `systemd-notify`, if systemd expects notifications. Does nothing
 * without `NOTIFY_SOCKET`: no service manager expects a notification.
 */
async function notifyManager(
  state: ServiceState,
  environment: NodeJS.ProcessEnv,
  logger: Logger,
): Promise<void> {
  if (!environment.NOTIFY_SOCKET) return;
  try {
    await run('systemd-notify', [MESSAGES[state]], { timeout: TIMEOUT_MS });
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    logger.write(
      'WARNING',
      'server',
      `systemd could not be notified that this is ${state}: ${problem}`,
    );
  }
}

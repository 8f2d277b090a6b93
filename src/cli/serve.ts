/** `mesh-na serve`: the authority as a process. */
import { type Command, Option } from 'commander';
import type { RunningAuthority } from '../boot.ts';
import { type Config, loadConfig } from '../config/load.ts';
import type { Flags } from '../config/options.ts';
import { OPTIONS, type OptionEntry } from '../config/options.ts';
import { type LogOutput, standardOutput } from '../log/log-output.ts';
import { problemText } from '../log/problem.ts';
import { systemRuntime } from '../runtime.ts';
import type { CommandReference } from '../views/command-reference.ts';
import { commandReference } from './command-reference.ts';
import { EXIT, type ExitCode, failure, onLocalFiles } from './exit-codes.ts';
import { makeNetwork } from './init.ts';
import { finishInterruptedInit, isUnused } from './init-network.ts';
import { collect, examples, jsonOption } from './options.ts';
import { printResult } from './output.ts';
import { packageVersion } from './version.ts';

interface ServeOptions extends Flags {
  readonly create?: boolean;
  readonly networkName: string;
  readonly json?: boolean;
}

/**
 * The default announcement of a stop: long enough for most load balancers to notice, and short enough that
 * requests in flight finish within the ten seconds that containers have.
 */
const ANNOUNCE_MS = 3000;

export function addServeCommand(program: Command): void {
  const command = program
    .command('serve')
    .description('start the authority; settings come from flags, then the environment')
    .option('--create', 'make a new network first when the data folder does not exist')
    .option('--network-name <name>', 'name of the network that --create makes', 'local-mesh')
    .addOption(jsonOption());
  for (const [name, entry] of Object.entries(OPTIONS)) addSetting(command, name, entry);
  command
    .addHelpText('after', variablesHelp())
    .addHelpText(
      'after',
      examples([
        'mesh-na serve --data-dir /var/lib/mesh --host 0.0.0.0 --port 8443',
        'MESH_LOG_FORMAT=json MESH_RATE_LIMIT_ADMIN=120/60 mesh-na serve',
        'mesh-na serve --operator-public-key ops-2=ops-2.pub --operator-key-tier ops-2=standard',
      ]),
    )
    .action(serve);
}

/** The table uses commander's names for options: `--data-dir` is `dataDir`. */
function addSetting(command: Command, _name: string, entry: OptionEntry): void {
  if (entry.flag === null) return;
  const known = [entry.variable === null ? '' : `env: ${entry.variable}`];
  if (entry.fallback !== null) known.push(`default: ${entry.fallback}`);
  const notes = known.filter((note) => note !== '').join(', ');
  const option = new Option(entry.flag, notes === '' ? entry.help : `${entry.help} (${notes})`);
  if (entry.repeatable) option.argParser(collect);
  command.addOption(option);
}

function variablesHelp(): string {
  const rows = Object.values<OptionEntry>(OPTIONS).filter(({ flag }) => flag === null);
  const lines = rows.map(
    ({ variable, help, fallback }) =>
      `  ${String(variable).padEnd(32)} ${help}${fallback === null ? '' : ` (default: ${fallback})`}`,
  );
  const limits = `  ${'MESH_RATE_LIMIT_<BUCKET>'.padEnd(32)} count/seconds, or off`;
  return ['', 'Environment only:', ...lines, limits].join('\n');
}

async function serve(options: ServeOptions, command: Command): Promise<void> {
  // Before anything is served, so that no signal ends the process uncleanly.
  const stop = awaitStop();
  const dataDir = options.dataDir ?? process.env.MESH_DATA_DIR ?? OPTIONS.dataDir.fallback;
  const unused = onLocalFiles(() => {
    finishInterruptedInit(String(dataDir));
    return isUnused(String(dataDir));
  });
  if (options.create && unused) {
    makeNetwork({ dataDir: String(dataDir), networkName: options.networkName });
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
  // Loaded here, so that the other commands start without the server's native parts.
  const { startAuthority } = await import('../boot.ts');
  const { startEdgeThread } = await import('../threads/edge-threads.ts');
  const { startWatchdog } = await import('../threads/watchdog.ts');
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

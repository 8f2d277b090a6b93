/** `mesh-na serve`: its options. What it does is loaded with the server's native parts, which no other command needs. */
import { type Command, Option } from 'commander';
import { OPTIONS, type OptionEntry } from '../config/options.ts';
import { loadNativeParts } from '../native-parts.ts';
import { EXIT, failure } from './exit-codes.ts';
import { collect, examples } from './options.ts';
import type { ServeOptions } from './serve-authority.ts';

export function addServeCommand(program: Command): void {
  const command = program
    .command('serve')
    .description('start the authority; settings come from flags, then the environment')
    .option('--create', 'make a new network first when the data folder is absent or empty')
    .option('--network-name <name>', 'name of the network that --create makes', 'local-mesh')
    .addOption(
      new Option('--json', 'print one JSON object once it serves; logs go to standard error'),
    );
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
    .action(runServe);
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
  const width = Math.max(...rows.map(({ variable }) => String(variable).length));
  const lines = rows.map(
    ({ variable, help, fallback }) =>
      `  ${String(variable).padEnd(width)}  ${help}${fallback === null ? '' : ` (default: ${fallback})`}`,
  );
  const limits = `  ${'MESH_RATE_LIMIT_<BUCKET>'.padEnd(width)}  count/seconds, or off`;
  return ['', 'Environment only:', ...lines, limits].join('\n');
}

async function runServe(options: ServeOptions, command: Command): Promise<void> {
  // Before a network is made that could not be served here.
  await loadNativeParts().catch(refuseStart);
  const { serveAuthority } = await import('./serve-authority.ts');
  await serveAuthority(options, command);
}

function refuseStart({ message }: Error): never {
  throw failure(EXIT.unusable, 'start_refused', message);
}

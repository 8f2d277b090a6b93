/** `mesh-na serve`: its options. The implementation is loaded on demand, because only it needs the native modules. */

import type { Command, Option } from 'commander';
import { messageOf } from '../../base/error-message.ts';
import { loadNativeParts } from '../../base/native-parts.ts';
import { OPTIONS, type OptionEntry, plain } from '../../server/config/options.ts';
import { define, option } from '../kernel/command.ts';
import { EXIT, failure } from '../kernel/errors.ts';
import type { ServeOptions } from './serve-authority.ts';

export function addServeCommand(program: Command): void {
  define(program, 'serve', {
    about: 'start the authority; flags override variables, which override mesh-na.json',
    asks: { options: [] },
    options: [
      option('--check', 'report all problems of the settings without starting', {
        conflicts: 'create',
      }),
      option('--create', 'create a new network first if the data folder is missing or empty'),
      option('--network-name <name>', 'name of the network for --create', {
        fallback: 'local-mesh',
      }),
      option('--json', 'print one JSON object once it is serving; logs go to standard error'),
      ...SETTING_OPTIONS,
    ],
    notes: VARIABLES,
    examples: [
      'mesh-na serve --data-dir /var/lib/mesh --host 0.0.0.0 --port 8443',
      'MESH_LOG_FORMAT=json MESH_RATE_LIMIT_ADMIN=120/60 mesh-na serve',
      'mesh-na serve --operator-public-key ops-2=ops-2.pub --operator-key-tier ops-2=standard',
    ],
    run: (_, __, command) => runServe(command.opts<ServeOptions>(), command),
  });
}

const SETTINGS = Object.values<OptionEntry>(OPTIONS);

/** The flags of the settings. The table uses commander's names: `--data-dir` is `dataDir`. */
export const SETTING_OPTIONS: readonly Option[] = SETTINGS.flatMap((entry) => {
  const { flag, variable, fallback, help, repeatable } = entry;
  if (flag === undefined) return [];
  const known = [
    ...(variable === undefined ? [] : [`env: ${variable}`]),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
  ];
  const notes = known.length === 0 ? '' : ` (${known.join(', ')})`;
  return [option(flag, `${plain(help)}${notes}`, repeatable ? { many: true } : {})];
});

export const VARIABLES = variablesHelp();

function variablesHelp(): string {
  const rows = SETTINGS.filter(
    ({ flag, member }) => flag === undefined && member?.startsWith('rate_limit.') !== true,
  );
  const width = Math.max(...rows.map(({ variable }) => String(variable).length));
  const lines = rows.map(
    ({ variable, help, fallback }) =>
      `  ${String(variable).padEnd(width)}  ${plain(help)}${fallback === undefined ? '' : ` (default: ${fallback})`}`,
  );
  const limits = `  ${'MESH_RATE_LIMIT_<BUCKET>'.padEnd(width)}  count/seconds, or off`;
  return [
    'Settings without a flag, from the environment or configuration file:',
    ...lines,
    limits,
  ].join('\n');
}

async function runServe(options: ServeOptions, command: Command): Promise<void> {
  // Fail before creating a network that could not be served here.
  try {
    loadNativeParts();
  } catch (cause) {
    throw failure(EXIT.unusable, 'start_refused', messageOf(cause));
  }
  const { serveAuthority } = await import('./serve-authority.ts');
  await serveAuthority(options, command);
}

/**
 * `mesh-na serve`, whose implementation is loaded on demand, because only it needs the native modules; and `mesh-na config`,
 * which shows the settings that `serve` would use, and where each comes from.
 */

import type { Command, Option } from 'commander';
import { messageOf } from '../../base/error-message.ts';
import type { JsonValue } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { loadNativeParts } from '../../base/native-parts.ts';
import {
  type Flags,
  nameOf,
  OPTIONS,
  type OptionEntry,
  type OptionName,
  plain,
} from '../../server/config/options.ts';
import { define, JSON_OPTION, option } from '../kernel/command.ts';
import { EXIT, failure } from '../kernel/errors.ts';
import { asJson, type OutputOptions, printResult } from '../kernel/output.ts';
import { column, tableOf } from '../kernel/table.ts';
import { environment } from '../state/place.ts';
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
const SETTING_OPTIONS: readonly Option[] = SETTINGS.flatMap((entry) => {
  const { flag, variable, fallback, help, repeatable } = entry;
  if (flag === undefined) return [];
  const known = [
    ...(variable === undefined ? [] : [`env: ${variable}`]),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
  ];
  const notes = known.length === 0 ? '' : ` (${known.join(', ')})`;
  return [option(flag, `${plain(help)}${notes}`, repeatable ? { many: true } : {})];
});

const VARIABLES = variablesHelp();

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

export function addConfigCommands(config: Command): void {
  define(config, 'show', {
    about: 'show each setting, and whether it comes from a flag, a variable, the file or a default',
    asks: { options: [] },
    options: [JSON_OPTION, ...SETTING_OPTIONS],
    notes: VARIABLES,
    examples: ['mesh-na config show', 'mesh-na config show --data-dir /var/lib/mesh --json'],
    run: (_, __, command) => show(command.opts()),
  });
  define(config, 'schema', {
    about: 'print the JSON schema of mesh-na.json, for editors',
    examples: ['mesh-na config schema > mesh-na.schema.json'],
    async run(options) {
      const { configFileSchema } = await import('../../server/config/config-file.ts');
      const schema = configFileSchema();
      printResult(options, asJson(schema), JSON.stringify(schema, null, 2).split('\n'));
    },
  });
}

interface Row {
  readonly [column: string]: JsonValue;
  readonly name: string;
  /** `set` instead of a secret. */
  readonly value: JsonValue;
  readonly source: string;
}

async function show(options: Flags & OutputOptions): Promise<void> {
  const { readSettings } = await import('../../server/config/settings.ts');
  const { setting, operators, configFile, problems } = readSettings(options, environment());
  const rows = (Object.keys(OPTIONS) as OptionName[]).map((name): Row => {
    const { member, isSecret = false }: OptionEntry = OPTIONS[name];
    const value = setting(name) as JsonValue;
    const isShown = value === null || !isSecret;
    return {
      name: member ?? nameOf(name),
      value: isShown ? value : 'set',
      source: setting.sourceOf(name),
    };
  });
  if (operators.length > 0) {
    const named = operators.map(({ key_id, tier }) => `${key_id}=${tier}`);
    rows.push({ name: 'operators', value: named, source: 'file' });
  }
  printResult(
    options,
    { config_file: configFile, settings: rows, problems },
    tableOf(
      [
        column('SETTING', ({ name }) => name),
        column('VALUE', ({ value }) => textOf(value)),
        column('FROM', ({ source }) => source),
      ],
      rows,
    ),
  );
  if (problems.length > 0) throw failure(EXIT.unusable, 'local_files', problems.join('; '));
}

function textOf(value: JsonValue): string {
  if (value === null) return '';
  return typeof value === 'string' ? value : jsonText(value);
}

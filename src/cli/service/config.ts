/** `mesh-na config`: the settings that `serve` would use, and where each one comes from. */

import type { Command } from 'commander';
import type { JsonValue } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import {
  type Flags,
  nameOf,
  OPTIONS,
  type OptionEntry,
  type OptionName,
} from '../../server/config/options.ts';
import { define, JSON_OPTION } from '../kernel/command.ts';
import { EXIT, failure } from '../kernel/errors.ts';
import { asJson, type OutputOptions, printResult } from '../kernel/output.ts';
import { column, tableOf } from '../kernel/table.ts';
import { environment } from '../state/place.ts';
import { SETTING_OPTIONS, VARIABLES } from './serve.ts';

export function addConfigCommands(program: Command): void {
  const config = program.command('config').description('inspect the settings of serve');
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

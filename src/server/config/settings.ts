/**
 * Reads all settings. Flags take precedence over variables, variables over the configuration file, and that over
 * defaults.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import Value from 'typebox/value';
import type { JsonValue } from '../../base/json/value.ts';
import { isExposed } from '../../base/keys/key-file.ts';
import { type ConfigFile, readConfigFile, shown } from './config-file.ts';
import { FILES } from './data-folder.ts';
import {
  type Environment,
  type Flags,
  nameOf,
  OPTIONS,
  type OptionEntry,
  type OptionName,
  type Setting,
  type Source,
} from './options.ts';

export interface Settings {
  readonly setting: Setting;
  readonly dataDir: string;
  readonly configFile: string;
  /** The operators in the configuration file. */
  readonly operators: ConfigFile['operators'];
  /** A sentence for each invalid value; the setting then has its default. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

interface Given {
  readonly value: unknown;
  /** As the user wrote it. */
  readonly written: JsonValue;
  readonly source: Source;
  readonly label: string;
}

export function readSettings(flags: Flags, environment: Environment): Settings {
  const problems: string[] = [];
  const given = new Map<OptionName, Given>();

  function take(name: OptionName, found: Given): void {
    const { kind, isSecret = false }: OptionEntry = OPTIONS[name];
    if (Value.Check(kind.schema, found.value)) return void given.set(name, found);
    const not = isSecret ? '' : `, not ${shown(found.written)}`;
    const wanted = (found.source === 'file' && kind.wantedInFile) || kind.wanted;
    problems.push(`${found.label} must be ${wanted}${not}`);
  }

  for (const name of Object.keys(OPTIONS) as OptionName[]) {
    const found = inFlags(flags, name) ?? inEnvironment(environment, name);
    if (found !== null) take(name, found);
  }
  const named = given.get('config')?.value as string | undefined;
  const folder = () => (given.get('dataDir')?.value ?? OPTIONS.dataDir.fallback) as string;
  const path = named ?? join(folder(), FILES.config);
  const file = readConfigFile(path, named !== undefined);
  problems.push(...file.problems);
  for (const [name, value] of file.values) {
    const label = `${OPTIONS[name as 'port'].member} in ${path}`;
    if (name === 'dataDir' && named === undefined) {
      problems.push(`${label} has no effect in that folder; remove it, or use --data-dir`);
    } else if (!given.has(name)) take(name, { value, written: value, source: 'file', label });
  }
  const isReadByOthers = file.values.has('naPrivateKeyText') && isExposed(path);
  if (isReadByOthers) {
    problems.push(
      `${path} holds a private key and can be opened by other users; run chmod 600 ${path}`,
    );
  }
  const own = join(folder(), FILES.config);
  const isLeftOut = named !== undefined && resolve(named) !== resolve(own) && existsSync(own);
  return {
    setting: settingOf(given),
    dataDir: folder(),
    configFile: path,
    operators: file.operators,
    problems,
    warnings: isLeftOut
      ? [`${own} is not read, because ${path} replaces it: move its settings there`]
      : [],
  };
}

function settingOf(given: ReadonlyMap<OptionName, Given>): Setting {
  const read = (name: OptionName) => {
    const { fallback, kind }: OptionEntry = OPTIONS[name];
    return given.get(name)?.value ?? (fallback === undefined ? null : kind.read(fallback));
  };
  return Object.assign(read, {
    labelOf: (name: OptionName) => given.get(name)?.label ?? nameOf(name),
    sourceOf: (name: OptionName) => given.get(name)?.source ?? 'default',
  }) as Setting;
}

function inFlags(flags: Flags, name: OptionName): Given | null {
  const raw = flags[name];
  if (raw === undefined || raw === '' || raw === false) return null;
  const value = typeof raw === 'string' ? OPTIONS[name].kind.read(raw) : raw;
  return { value, written: raw, source: 'flag', label: nameOf(name) };
}

/** An empty variable counts as unset. */
function inEnvironment(environment: Environment, name: OptionName): Given | null {
  const { variable, kind }: OptionEntry = OPTIONS[name];
  const text = variable === undefined ? undefined : environment[variable];
  if (variable === undefined || !text) return null;
  return { value: kind.read(text), written: text, source: 'variable', label: variable };
}

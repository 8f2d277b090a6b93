/**
 * The configuration file: `mesh-na.json` in the data folder, where `init` writes it, or the file that `--config` names.
 * Its schema is generated from the table of settings; flags and variables take precedence over it.
 */
import { existsSync } from 'node:fs';
import Type, { type Static, type TSchema } from 'typebox';
import Value from 'typebox/value';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { parseJson } from '../../base/json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { readNamedFile } from '../../base/named-file.ts';
import { OPTIONS, type OptionEntry, type OptionName, plain } from './options.ts';

const Operators = Type.Array(
  Type.Object(
    { key_id: Type.String(), tier: Type.String(), public_key: Type.String() },
    { additionalProperties: false },
  ),
  { description: 'Operator keys, each with its tier, standard or privileged' },
);

/** Members that are not settings of `serve`. */
const OWN_MEMBERS: { readonly [name: string]: TSchema } = {
  $schema: Type.String({ description: 'Where an editor finds this schema' }),
  network_name: Type.String({ description: 'Name of the network, for people' }),
  operators: Operators,
};

const MEMBERS = new Map(
  Object.entries<OptionEntry>(OPTIONS).flatMap(([name, { member }]) =>
    member === null ? [] : [[member, name as OptionName] as const],
  ),
);
const GROUPS = new Set([...MEMBERS.keys()].flatMap((path) => path.split('.').slice(0, -1)));

export interface ConfigFile {
  readonly values: ReadonlyMap<OptionName, JsonValue>;
  readonly operators: Static<typeof Operators>;
  readonly problems: readonly string[];
}

/** A missing file configures nothing; it is a problem only if it `isNamed`. */
export function readConfigFile(path: string, isNamed: boolean): ConfigFile {
  const nothing = { values: new Map(), operators: [] };
  if (!isNamed && !existsSync(path)) return { ...nothing, problems: [] };
  const read = jsonIn(path);
  return typeof read === 'string' ? { ...nothing, problems: [read] } : membersOf(read, path);
}

/** The object in the file, or a sentence that says why there is none. */
function jsonIn(path: string): JsonObject | string {
  const what = `The configuration file ${path}`;
  let text: string;
  try {
    text = readNamedFile(path, MOST_BYTES.settings).toString();
  } catch (cause) {
    return `${what} cannot be read (${(cause as NodeJS.ErrnoException).code}); fix it, or name another with --config`;
  }
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : `${what} must contain an object`;
  } catch (cause) {
    return `${what} is not valid JSON: ${(cause as Error).message}`;
  }
}

function membersOf(file: JsonObject, path: string): ConfigFile {
  const values = new Map<OptionName, JsonValue>();
  const problems: string[] = [];
  let operators: Static<typeof Operators> = [];
  const wrong = (name: string, rest: string) => problems.push(`${name} in ${path} ${rest}`);

  function take(name: string, value: JsonValue): void {
    const setting = MEMBERS.get(name);
    if (setting !== undefined) return void values.set(setting, value);
    if (GROUPS.has(name)) {
      if (!isJsonObject(value)) return void wrong(name, 'must be an object of its settings');
      for (const [inner, of] of Object.entries(value)) take(`${name}.${inner}`, of);
      return;
    }
    const own = Object.hasOwn(OWN_MEMBERS, name) ? OWN_MEMBERS[name] : undefined;
    if (own === undefined) {
      const hint = hintFor(name, [...MEMBERS.keys(), ...Object.keys(OWN_MEMBERS)]);
      wrong(name, `is not a setting${hint}`);
    } else if (!Value.Check(own, value)) {
      const form =
        own === Operators ? 'a list of objects with key_id, tier and public_key' : 'text';
      // The value may be a private key by mistake, so it is not repeated.
      wrong(name, `must be ${form}`);
    } else if (own === Operators) {
      operators = value as Static<typeof Operators>;
    }
  }

  for (const [name, value] of Object.entries(file)) take(name, value);
  return { values, operators, problems };
}

const LONGEST_SHOWN = 40;

/** A value as it appears in messages. */
export function shown(value: JsonValue): string {
  const text = jsonText(value);
  return text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN)}…`;
}

/** The schema of the file, for editors. */
export function configFileSchema(): TSchema {
  const tree: { [name: string]: TSchema } = { ...OWN_MEMBERS };
  const groups = new Map([...GROUPS].map((group) => [group, {} as { [name: string]: TSchema }]));
  for (const [path, name] of MEMBERS) {
    const [first = '', inner] = path.split('.');
    const place = inner === undefined ? tree : groups.get(first);
    if (place !== undefined) place[inner ?? first] = described(OPTIONS[name]);
  }
  for (const [group, members] of groups) tree[group] = objectOf(members);
  const head = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'mesh-na.json, the settings of mesh-na serve',
  };
  return { ...head, ...objectOf(tree) };
}

function objectOf(members: { readonly [name: string]: TSchema }): TSchema {
  const optional = Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)]);
  return Type.Object(Object.fromEntries(optional), { additionalProperties: false });
}

function described({ kind, help, fallback }: OptionEntry): TSchema {
  return {
    description: plain(help),
    ...(fallback !== undefined && { default: kind.read(fallback) }),
    ...kind.schema,
  };
}

const OURS = 'MESH_';
/** Variables that a container platform sets for a service with such a name. */
const OF_A_SERVICE = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP)(_|$)/;
const ADDRESS_OF_A_SERVICE = /^(tcp|udp):\/\//;
/** A name with more differences than this is considered another word. */
const MOST_DIFFERENCES = 2;

const SETTINGS = Object.values<OptionEntry>(OPTIONS).flatMap(({ variable }) => variable ?? []);

/**
 * Variables that look like settings but are not: a misspelled one would otherwise silently have no effect. A sentence
 * for each unknown variable; `others` are the variables that other commands read. No sentence repeats a value.
 */
export function unknownVariables(
  environment: { readonly [name: string]: string | undefined },
  others: readonly string[],
): string[] {
  const known = [...SETTINGS, ...others];
  return Object.entries(environment)
    .filter(([name, value = '']) => isMeantForUs(name, value) && !known.includes(name))
    .map(([name]) => {
      const bare = name.slice(OURS.length);
      const hint = known.includes(bare) ? `; did you mean ${bare}?` : hintFor(name, known);
      return `The variable ${name} is not a setting and has no effect${hint}`;
    });
}

function isMeantForUs(name: string, value: string): boolean {
  return name.startsWith(OURS) && !OF_A_SERVICE.test(name) && !ADDRESS_OF_A_SERVICE.test(value);
}

/** What to do about an unknown name: use the known one that was probably meant, or none. */
function hintFor(name: string, known: readonly string[]): string {
  const most = Math.min(MOST_DIFFERENCES, name.length / 2);
  const [best] = known
    .map((candidate) => ({ candidate, by: differences(name, candidate) }))
    .filter(({ by }) => by <= most)
    .sort((a, b) => a.by - b.by);
  return best === undefined ? '; remove it' : `; did you mean ${best.candidate}?`;
}

/** The Levenshtein distance: the number of letters to add, remove or replace. */
function differences(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      const replaced = (row[j] ?? 0) + (letter === b[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

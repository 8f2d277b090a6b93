/** `docs/configuration.md`: every setting of `mesh-na serve`; and the schema of the configuration file. */
import { configFileSchema } from '../../src/server/config/config-file.ts';
import { GROUPS, type OptionEntry } from '../../src/server/config/options.ts';
import { code, escaped, page, sentence, table } from './markdown.ts';

const INTRODUCTION = `Settings of \`mesh-na serve\`. None is needed to begin with: \`mesh-na init\` writes keys, a genesis block and
\`mesh-na.json\` into the data folder, and \`mesh-na serve\` reads them.

A flag wins over an environment variable, a variable over the configuration file, and that over the default. An empty
variable is none. A setting that is not valid refuses the start with exit code 3 and a sentence that names it:

- \`mesh-na serve --check\`, with the flags and variables of the service, names every problem at once and starts nothing.
  Its exit code is 0, or 3 if a start would be refused.
- \`mesh-na config show\` shows each value and where it comes from. A secret is shown as \`set\`.
- \`mesh-na doctor\` makes the same check, and looks at the state and its surroundings.

## The configuration file

\`mesh-na.json\` in the data folder, or the file that \`--config\` or \`MESH_CONFIG\` names in its place; then that of the
data folder is not read. The file holds an object with the members of the tables below; one with a dot is inside an object, so
\`tls.cert\` is \`{"tls": {"cert": "…"}}\`. Numbers, lists and \`true\` are written as such, not as text. An unknown member
refuses the start. Relative paths are relative to the working directory, as in flags.

\`\`\`json
{
  "$schema": "./mesh-na.schema.json",
  "host": "0.0.0.0",
  "tls": { "cert": "/etc/mesh-na/cert.pem", "key": "/etc/mesh-na/key.pem" },
  "backup": { "to": "/backup", "every": "6h", "keep": 28 },
  "rate_limit": { "admin": "120/60" },
  "operators": [{ "key_id": "ops-1", "tier": "privileged", "public_key": "…" }]
}
\`\`\`

Two members are in no table. \`operators\` lists operator keys with their tiers. Those of the file, the variables and the
flags are merged; a contradiction refuses the start, and so does a key without a tier. \`network_name\` is for people.

Editors complete and check the file by its schema, [mesh-na.schema.json](mesh-na.schema.json): \`mesh-na config schema >
mesh-na.schema.json\` writes it next to the file, where \`$schema\` names it.

\`--new-head\` is meant for one start, so it has no member in the file. Other commands that read a state take \`store\` from the file, too. They
take the data folder from \`--data-dir\` or \`MESH_DATA_DIR\`, not from \`data_dir\`.`;

const RATE_LIMITS = `A limit is \`count/seconds\`, or \`off\`. Windows slide, refused requests are not counted, and limits are forgotten at a
restart. An address is an IPv4 address or the /64 of an IPv6 address.`;

const LARGE_BODIES = `Whatever the limits, forged bodies above 256 KiB are [answered unread](wire/core.md#core-2-3) from the third of an address in a minute on.`;

const { 'Rate limits': LIMITS, ...OTHERS } = GROUPS;

export function configurationPage(): string {
  return page(
    'Configuration',
    INTRODUCTION,
    ...Object.entries(OTHERS).map(([title, options]) => `## ${title}\n\n${tableOf(options)}`),
    `## Rate limits\n\n${RATE_LIMITS}\n\n${tableOf(LIMITS)}\n\n${LARGE_BODIES}`,
  );
}

export function configurationSchema(): string {
  return `${JSON.stringify(configFileSchema(), null, 2)}\n`;
}

/** A table without flags has no column for them. */
function tableOf(options: { readonly [name: string]: OptionEntry }): string {
  const settings = Object.values(options);
  const columns: readonly (readonly [string, (setting: OptionEntry) => string])[] = [
    ['Flag', ({ flag }) => named(flag)],
    ['Variable', ({ variable }) => named(variable)],
    ['In the file', ({ member }) => named(member ?? undefined)],
    ['Default', ({ fallback }) => named(fallback)],
    ['Meaning', ({ help, kind }) => escaped(`${sentence(help)}${rangeOf(kind.wanted)}`)],
  ];
  const filled = columns.filter(([, cell]) => settings.some((setting) => cell(setting) !== ''));
  return table(
    filled.map(([title]) => title),
    settings.map((setting) => filled.map(([, cell]) => cell(setting))),
  );
}

function named(name: string | undefined): string {
  return name === undefined ? '' : code(name);
}

/** The bounds of a number or a duration. */
function rangeOf(wanted: string): string {
  const [, range] = /^a (?:whole number|duration) from (\S+ to [^\s,]+)/.exec(wanted) ?? [];
  return range === undefined ? '' : ` From ${range}.`;
}

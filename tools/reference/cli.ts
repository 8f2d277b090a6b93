/** `docs/cli.md`: the commands, from their help. */
import { commandReference } from '../../src/cli/command-reference.ts';
import { buildProgram } from '../../src/cli/program.ts';
import type { Term } from '../../src/pages/reference/cli-reference.ts';
import { code, escaped, page, sentence, table } from './markdown.ts';

const INTRODUCTION = `From a checkout \`npm run -s mesh-na -- <command>\`, installed \`mesh-na <command>\`. \`--help\` behind any command shows its
arguments, options and examples; so does \`/cli-reference\` of every authority. With \`--json\` a command prints exactly one JSON
object, on standard error if it fails; \`events --follow\` and \`authority-key status --watch\` print one a line. What a bulk change has
done before it failed is on standard output. A shell completes commands and options with what \`mesh-na completion\` prints.

On a terminal, lists show ids and keys by the first characters that distinguish them, which commands accept in their place, and times
relative to now. A table that is wider than the terminal leaves out columns, then cuts cells, but never the first column, names, ids or times;
\`--wide\` shows everything. States are colored unless \`NO_COLOR\` is set. In a pipe or a file tables are plain and
complete.

\`mesh-na call <operation>\` makes one request to the API, signs it if it is for operators, and prints the answer as JSON;
\`mesh-na call\` lists the operations. Each member of the path, the query and the body is an
option of that name, \`max_validity_hours\` is \`--max-validity-hours\`; text is given as it is, anything else as JSON, and a list by
repeating the option. \`--body\` names a file with members of the body, which options replace. A member that is called like an option of the
connection begins with \`target-\`: \`--target-key-id\` names a key, \`--key-id\` the one that signs.`;

/** An option of so many commands is described here. */
const COMMON = 5;

export function cliPage(): string {
  const { commands: all, notes } = commandReference(buildProgram());
  const commands = all.filter(({ path }) => !path.startsWith('call '));
  const uses = new Map<string, Term[]>();
  for (const option of commands.flatMap(({ options }) => options)) {
    const key = `${option.term}\n${option.description}`;
    uses.set(key, [...(uses.get(key) ?? []), option]);
  }
  const common = [...uses.values()].flatMap((same) =>
    same.length < COMMON ? [] : same.slice(0, 1),
  );
  const single = commands.map(({ path }) => path).filter((path) => !path.includes(' '));
  return page(
    'Command line',
    INTRODUCTION,
    `\`\`\`text\n${notes}\n\`\`\``,
    '## Commands',
    `\`mesh-na --help\` and \`/cli-reference\` say what each of them does. ${single.map(code).join(', ')} are commands by themselves.`,
    table(['Command', 'Its parts'], nounsOf(commands.map(({ path }) => path))),
    '## Options of many commands',
    table(
      ['Option', 'Meaning'],
      common.map(({ term, description }) => [code(term), escaped(sentence(description))]),
    ),
  );
}

/** Commands of two words, by the noun with which they begin. */
function nounsOf(paths: readonly string[]): string[][] {
  const parts = new Map<string, string[]>();
  for (const [noun = '', verb] of paths.map((path) => path.split(' '))) {
    if (verb !== undefined) parts.set(noun, [...(parts.get(noun) ?? []), code(verb)]);
  }
  return [...parts].map(([noun, verbs]) => [code(noun), verbs.join(', ')]);
}

/** `docs/cli.md`: every command, from its help. */
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import type { CommandEntry, Term } from '../src/pages/reference/command-reference.ts';
import { code, escaped, page, sentence, table } from './markdown.ts';

const INTRODUCTION = `From a checkout \`npm run -s mesh-na -- <command>\`, installed \`mesh-na <command>\`. \`--help\` behind any command shows
what is written here. With \`--json\` a command prints exactly one JSON object, also when it fails. A shell completes commands and
options with what [\`mesh-na completion\`](#mesh-na-completion) prints.

On a terminal, lists show ids and keys by the first characters that distinguish them, which commands accept in their place, and times
relative to now. A table that is wider than the terminal leaves out columns, then cuts cells, but never the first column, names, ids or times;
\`--wide\` shows everything. States are colored unless \`NO_COLOR\` is set. In a pipe or a file tables are plain and
complete.

\`mesh-na call <operation>\` makes one request to the API, signs it if it is for operators, and prints the answer as JSON;
\`mesh-na call\` lists the operations. Each member of the path, the query and the body is an
option of that name, \`max_validity_hours\` is \`--max-validity-hours\`; text is given as it is, anything else as JSON, and a list by
repeating the option. \`--body\` names a file with members of the body, which options replace. A member that is called like an option of the
connection begins with \`target-\`: \`--target-key-id\` names a key, \`--key-id\` the one that signs.`;

export function cliPage(): string {
  const { commands: all, notes } = commandReference(buildProgram());
  const isOperation = ({ path }: CommandEntry) => path.startsWith('call ');
  const commands = all.filter((command) => !isOperation(command));
  return page(
    'Command line',
    INTRODUCTION,
    `## In general\n\n${block(notes)}`,
    '## Commands',
    table(
      ['Command', 'What it does'],
      commands.map(({ path, description }) => [
        `[${code(path)}](#${anchorOf(path)})`,
        escaped(sentence(description)),
      ]),
    ),
    ...commands.map(sectionOf),
    '## Operations',
    'Each is a command below `mesh-na call`, whose `--help` shows the options, and is described at `/api-reference`.',
    table(
      ['Command', 'What it does'],
      all
        .filter(isOperation)
        .map(({ path, description }) => [code(path), escaped(sentence(description))]),
    ),
  );
}

function sectionOf({ path, description, usage, arguments: given, options, notes }: CommandEntry) {
  const shown = options.filter(({ term }) => term !== '-h, --help');
  return [
    `### mesh-na ${path}`,
    escaped(sentence(description)),
    block(usage),
    ...(given.length === 0 ? [] : [termTable('Argument', given)]),
    ...(shown.length === 0 ? [] : [termTable('Option', shown)]),
    ...(notes === '' ? [] : [block(notes)]),
  ].join('\n\n');
}

function anchorOf(path: string): string {
  return `mesh-na-${path.replaceAll(' ', '-').toLowerCase()}`;
}

function termTable(head: string, terms: readonly Term[]): string {
  return table(
    [head, 'Meaning'],
    terms.map(({ term, description }) => [code(term), escaped(sentence(description))]),
  );
}

function block(text: string): string {
  return `\`\`\`text\n${text}\n\`\`\``;
}

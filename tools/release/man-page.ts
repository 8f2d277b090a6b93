/** `mesh-na.1`: the manual page, from the help of every command. */
import { commandReference } from '../../src/cli/command-reference.ts';
import { buildProgram } from '../../src/cli/program.ts';
import type { CommandEntry, Term } from '../../src/pages/reference/cli-reference.ts';

export function manPage(): string {
  const { name, description, version, options, notes, commands } = commandReference(buildProgram());
  return [
    `.TH ${name.toUpperCase()} 1 "" "${name} ${version}" "User Commands"`,
    section('NAME'),
    text(`${name} - ${description}`),
    section('SYNOPSIS'),
    `.B ${text(name)}`,
    text('<command> [options]'),
    section('OPTIONS'),
    ...terms(options),
    section('IN GENERAL'),
    preformatted(notes),
    section('COMMANDS'),
    ...commands.flatMap((command) => entry(name, command)),
  ]
    .join('\n')
    .concat('\n');
}

function entry(name: string, command: CommandEntry): string[] {
  const { path, description, usage, arguments: given, options, notes } = command;
  return [
    `.SS "${text(`${name} ${path}`)}"`,
    text(`${description[0]?.toUpperCase()}${description.slice(1)}.`),
    preformatted(usage),
    ...terms([...given, ...options.filter(({ term }) => term !== '-h, --help')]),
    ...(notes === '' ? [] : [preformatted(notes)]),
  ];
}

function section(title: string): string {
  return `.SH ${title}`;
}

function terms(rows: readonly Term[]): string[] {
  return rows.flatMap(({ term, description }) => ['.TP', `.B ${text(term)}`, text(description)]);
}

function preformatted(lines: string): string {
  return ['.PP', '.nf', ...lines.split('\n').map(text), '.fi'].join('\n');
}

/** Text that the formatter takes literally: a hyphen that can be copied, and no request at the start of a line. */
function text(raw: string): string {
  return raw
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('\n', ' ')
    .replace(/^(?=[.'])/, '\\&');
}

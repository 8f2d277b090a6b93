/** `/cli-reference`: the command tree, which is plain data for the thread that shows it, for people. */

import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html } from '../ui/html.ts';
import { capital } from '../ui/values.ts';
import { fieldList, nothingFits, referenceContents } from './contents.ts';

/** Lines that begin with a prompt are examples, not rows. */
const ROW = /^ {2}(?!\$ )(\S+(?: \S+)*) {2,}(\S.*)$/;

interface CommandGroup {
  readonly id: string;
  readonly title: string;
  readonly commands: readonly CommandEntry[];
}

export function cliReferencePage(program: CommandReference, networkName: string): HtmlPage {
  const groups = groupsOf(program);
  return renderPage({
    title: 'CLI reference',
    lede: `Every command of ${program.name} ${program.version}, from its help.`,
    path: '/cli-reference',
    networkName,
    body: reference(program, groups),
  });
}

/** What readers look for first. */
const FIRST = ['node join', 'node heartbeat'];

/** Groups commands by subject; subjects with a single command share one group. */
function groupsOf({ commands }: CommandReference): CommandGroup[] {
  const subjects = new Map<string, CommandEntry[]>();
  const first = FIRST.flatMap((path) => commands.filter((command) => command.path === path));
  for (const command of new Set([...first, ...commands])) {
    const [first = '', second] = command.path.split(' ');
    const subject = second === undefined ? '' : first;
    subjects.set(subject, [...(subjects.get(subject) ?? []), command]);
  }
  return [...subjects].map(([subject, held]) => ({
    id: subject === '' ? 'authority' : `commands-${subject}`,
    title: subject === '' ? 'Authority and operators' : capital(subject.replaceAll('-', ' ')),
    commands: held,
  }));
}

function contentsOf({ id, title, commands }: CommandGroup) {
  return { id, title, links: commands.map(({ path }) => [anchorOf(path), path] as const) };
}

function anchorOf(path: string): string {
  return path.replaceAll(' ', '-');
}

function reference({ name, description, notes }: CommandReference, groups: CommandGroup[]): Html {
  return html`<div class="reference">
${referenceContents('Search commands', groups.map(contentsOf))}<div class="entries">
<section aria-labelledby="general">
<h2 id="general">General</h2>
<p>${description}</p>
${helpNotes(notes)}</section>
${nothingFits}${groups.map(
  ({ id, title, commands }) => html`<section aria-labelledby="${id}" data-group>
<h2 id="${id}">${title}</h2>
${commands.map((command) => entry(name, command))}</section>`,
)}</div>
</div>`;
}

function entry(programName: string, command: CommandEntry): Html {
  const { path, description, usage, notes } = command;
  const anchor = anchorOf(path);
  const name = `${programName} ${path}`;
  return html`<article class="entry" id="${anchor}" data-entry>
<h3><a href="#${anchor}">${name}</a></h3>
<p>${description}</p>
<pre class="code">${usage}</pre>
${notes === '' ? '' : helpNotes(notes)}
${command.arguments.length === 0 ? '' : html`<h4>Arguments</h4>${termList(command.arguments)}`}
<h4>Options</h4>${termList(command.options)}</article>`;
}

function termList(terms: CommandEntry['options']): Html {
  return fieldList(terms.map(({ term, description }) => [term, description] as const));
}

/** The last part of a command's help. Its two columns become a list of fields, so that long lines wrap. */
function helpNotes(notes: string): Html {
  return html`<div class="notes">
${blocksOf(notes.split('\n')).map(block)}</div>`;
}

/** Consecutive lines that either all are rows of two columns or all are not. */
interface Block {
  readonly isTable: boolean;
  readonly lines: string[];
}

function blocksOf(lines: readonly string[]): Block[] {
  const blocks: Block[] = [];
  for (const line of lines) {
    const isTable = ROW.test(line);
    const last = blocks.at(-1);
    if (last?.isTable === isTable) last.lines.push(line);
    else blocks.push({ isTable, lines: [line] });
  }
  return blocks;
}

function block({ isTable, lines }: Block): Html {
  return isTable ? fieldList(lines.map(row)) : html`<pre>${lines.join('\n').trim()}</pre>`;
}

function row(line: string): [term: string, description: string] {
  const [, term = '', description = ''] = ROW.exec(line) ?? [];
  return [term, description];
}

export interface CommandReference {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** Options of the program itself. */
  readonly options: readonly Term[];
  /** The last part of the program's help: exit codes and examples. */
  readonly notes: string;
  /** Every runnable command, in the order of the help. */
  readonly commands: readonly CommandEntry[];
}

export interface CommandEntry {
  /** The words after the name of the program, such as `treaty issue`. */
  readonly path: string;
  readonly description: string;
  readonly usage: string;
  readonly arguments: readonly Term[];
  readonly options: readonly Term[];
  /** The last part of its help, mostly examples; may be empty. */
  readonly notes: string;
}

export interface Term {
  readonly term: string;
  readonly description: string;
}

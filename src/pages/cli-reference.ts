/** `/cli-reference`: the command tree, for people. */
import type { HtmlPage } from '../http/reply.ts';
import type { CommandEntry, CommandReference } from '../views/command-reference.ts';
import { FILTER_SCRIPT } from './filter-script.ts';
import { renderPage } from './frame.ts';
import { nothingFits, referenceContents } from './reference-contents.ts';
import { REFERENCE_STYLE } from './reference-style.ts';
import { type Html, joined, template } from './templates.ts';

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
    body: reference({
      contents: referenceContents({ search: 'Search commands', groups: groups.map(contentsOf) }),
      nothingFits,
      program,
      groups: groups.map(({ id, title, commands }) => ({
        id,
        title,
        entries: joined(commands.map((command) => entryOf(program.name, command))),
      })),
    }),
    style: REFERENCE_STYLE,
    script: FILTER_SCRIPT,
  });
}

/** Commands are grouped by subject; commands that are alone in theirs form one group. */
function groupsOf({ commands }: CommandReference): CommandGroup[] {
  const subjects = new Map<string, CommandEntry[]>();
  for (const command of commands) {
    const [first = '', second] = command.path.split(' ');
    const subject = second === undefined ? '' : first;
    subjects.set(subject, [...(subjects.get(subject) ?? []), command]);
  }
  return [...subjects].map(([subject, held]) => ({
    id: subject === '' ? 'authority' : `commands-${subject}`,
    title: subject === '' ? 'Authority and operators' : subject,
    commands: held,
  }));
}

function contentsOf({ id, title, commands }: CommandGroup) {
  const links = commands.map(({ path }) => ({ anchor: anchorOf(path), mark: '', label: path }));
  return { id, title, links };
}

function anchorOf(path: string): string {
  return path.replaceAll(' ', '-');
}

function entryOf(programName: string, command: CommandEntry): Html {
  const { path, description, options, notes } = command;
  const flags = options.map(({ term }) => term).join(' ');
  return entry({
    ...command,
    anchor: anchorOf(path),
    search: [programName, path, description, flags, notes].join(' '),
    name: `${programName} ${path}`,
  });
}

const reference = template<{
  readonly contents: Html;
  readonly nothingFits: Html;
  readonly program: CommandReference;
  readonly groups: readonly {
    readonly id: string;
    readonly title: string;
    readonly entries: Html;
  }[];
}>(`<div class="reference">
<%~ it.contents %>
<div class="entries">
<section aria-labelledby="general">
<h2 id="general">In general</h2>
<p><%= it.program.description %></p>
<pre class="notes"><%= it.program.notes %></pre>
</section>
<%~ it.nothingFits %>
<% for (const group of it.groups) { %>
<section aria-labelledby="<%= group.id %>" data-group>
<h2 id="<%= group.id %>"><%= group.title %></h2>
<%~ group.entries %>
</section>
<% } %>
</div>
</div>
`);

const entry = template<
  CommandEntry & { readonly anchor: string; readonly search: string; readonly name: string }
>(`<% const termList = (terms) => { %>
<dl class="fields">
<% for (const { term, description } of terms) { %>
<div><dt><code><%= term %></code></dt><dd><%= description %></dd></div>
<% } %>
</dl>
<% } %>
<article class="entry" id="<%= it.anchor %>" aria-labelledby="<%= it.anchor %>-head" data-entry="<%= it.search %>">
<h3 id="<%= it.anchor %>-head"><a href="#<%= it.anchor %>"><%= it.name %></a></h3>
<p><%= it.description %></p>
<pre class="code" tabindex="0" aria-label="Usage of <%= it.name %>"><%= it.usage %></pre>
<% if (it.notes) { %>
<pre class="notes"><%= it.notes %></pre>
<% } %>
<% if (it.arguments.length > 0) { %>
<h4>Arguments</h4>
<% termList(it.arguments) %>
<% } %>
<h4>Options</h4>
<% termList(it.options) %>
</article>
`);

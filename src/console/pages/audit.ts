/** *Audit*: what happened, who did it, and whether the log is intact. */

import { shownCount } from '../../base/counts.ts';
import type { LoggedEvent } from '../../client/events.ts';
import { idsOfNode } from '../../client/nodes.ts';
import { type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { choiceField, emptyState, facts, textField } from '../../pages/ui/parts.ts';
import { idValue } from '../../pages/ui/values.ts';
import { byRequest } from '../../protocol/audit-sentence.ts';
import { AUDIT_EVENTS } from '../../protocol/rows/audit-event.ts';
import type { Context } from '../context.ts';
import {
  detailsText,
  entriesIn,
  entriesTable,
  type NamedEvent,
  newestFirst,
  reachOf,
} from '../entries.ts';
import { textIn } from '../forms.ts';
import { definePage } from '../page.ts';
import { problemLine } from '../shell.ts';

type AuditQuery = ReturnType<typeof auditQuery>;

const LONGEST = 256;
const MOST_SHOWN = 200;
const PROGRESS_EVERY = 10_000;

export const AUDIT = definePage({
  path: '/audit',
  title: 'Audit',
  async show(context, given) {
    const query = auditQuery(given);
    const log = await entriesFor(context, query);
    const { after, last } = log;
    const older =
      after === 0
        ? NO_HTML
        : html`<a href="${address(query, after)}" rel="next">Earlier entries</a>`;
    const newest =
      query.upTo === null ? NO_HTML : html`<a href="${address(query, null)}">Newest entries</a>`;
    return {
      news: query.upTo === null ? `./audit-news?after=${last}` : null,
      body: html`${filterForm(query, context)}<div class="listing">
${listing(query, log)}<nav class="pager" aria-label="Pages of the audit log">${newest}${older}<a href="./audit-check">Verify the whole log</a></nav>
</div>`,
    };
  },
  streams: [
    {
      path: '/audit-news',
      type: 'text/event-stream',
      async *pieces({ client, publicClient }, query, signal) {
        // While the authority does not answer, the stream ends or does not begin: then the browser says so. The entry
        // before comes at once, or the key may not read it.
        const { log_size: size } = await publicClient.readBulletin();
        const after = indexIn(query.get('after')) ?? size;
        const events = client.events({ after: Math.max(0, after - 1), signal, onLost: rethrow });
        if (after === 0) yield ': waiting\n\n';
        for await (const { index } of events) {
          yield index > after ? `data: ${index}\n\n` : ': waiting\n\n';
        }
      },
    },
    {
      path: '/audit-check',
      type: 'text/html; charset=utf-8',
      title: 'Audit log verification',
      pieces: verified,
    },
  ],
});

function rethrow(error: Error): never {
  throw error;
}

function auditQuery(given: URLSearchParams) {
  const text = (name: string) => textIn(given, name).slice(0, LONGEST);
  return {
    type: AUDIT_EVENTS.find((event) => event === text('type')) ?? '',
    actor: text('actor'),
    subject: text('q'),
    /** Shows the entries up to this index; null for the newest. */
    upTo: indexIn(given.get('upto')),
  };
}

function indexIn(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

type FoundEntries = Awaited<ReturnType<typeof entriesFor>>;

/** The newest, and how many were found. */
async function entriesFor(context: Context, query: AuditQuery) {
  const [reach, ids] = await Promise.all([
    reachOf(context, query.upTo ?? undefined),
    idsOfNode(context.client, query.subject),
  ]);
  const { after } = reach;
  let { last } = reach;
  const entries: NamedEvent[] = [];
  // Also what was logged since the bulletin was issued.
  const wanted = query.upTo === null ? { after, last: Infinity } : reach;
  for await (const event of entriesIn(context, wanted)) {
    last = event.index;
    if (passes(event, query, ids)) entries.push(event);
  }
  const newest = entries.slice(-MOST_SHOWN);
  const shown = await newestFirst(context, byRequest(newest));
  return { shown, shownEntries: newest.length, found: entries.length, after, last };
}

function passes(
  { entry, names }: NamedEvent,
  { type, actor, subject }: AuditQuery,
  ids: readonly string[],
): boolean {
  const isAbout = () => {
    const text = detailsText(entry);
    return (
      text.includes(subject) ||
      ids.some((id) => text.includes(id)) ||
      [...names.values()].includes(subject)
    );
  };
  return (
    (type === '' || entry.event_type === type) &&
    (actor === '' || entry.actor_key_id === actor) &&
    (subject === '' || isAbout())
  );
}

function listing(
  { type, actor, subject }: AuditQuery,
  { shown, shownEntries, found, after, last }: FoundEntries,
): Html {
  if (found === 0) {
    return emptyState(
      last === 0
        ? 'Nothing was logged yet.'
        : `None of the entries ${shownCount(after + 1)} to ${shownCount(last)} matches.`,
    );
  }
  const isFiltered = `${type}${actor}${subject}` !== '';
  const all = isFiltered ? `: ${shownCount(found)} found` : '';
  const cut = shownEntries === found ? '' : `; shown are ${MOST_SHOWN} of them`;
  const caption = `Entries ${shownCount(after + 1)} to ${shownCount(last)}${all}, newest first${cut}`;
  return entriesTable('entries', caption, shown);
}

function filterForm({ type, actor, subject }: AuditQuery, { operators }: Context): Html {
  return html`<form class="ask" method="get" action="./audit" role="search">
<p class="field"><label for="q">Name, id or key</label><input type="search" id="q" name="q" value="${subject}" autocomplete="off" spellcheck="false"></p>
${choiceField('type', 'Event', [['', 'Any'], ...AUDIT_EVENTS.map((event) => [event, event] as const)], type)}
${textField('actor', 'Operator key', actor, operators)}
<p class="field"><button type="submit">Find</button> <a href="./audit">Clear</a></p>
</form>`;
}

function address({ type, actor, subject }: AuditQuery, upTo: number | null): string {
  const all = { q: subject, type, actor, upto: upTo === null ? '' : String(upTo) };
  const given = Object.entries(all).filter(([, value]) => value !== '');
  return `./audit?${new URLSearchParams(given)}`;
}

/** Reads the log from its first entry; the client refuses an entry that does not continue the one before. */
async function* verified(
  context: Context,
  _: URLSearchParams,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  yield '<ul class="plain muted">\n<li>Reading the audit log from its first entry.</li>\n';
  let last: LoggedEvent | null = null;
  try {
    for await (const event of context.client.events({ follow: false, signal })) {
      last = event;
      if (event.index % PROGRESS_EVERY === 0)
        yield html`<li>${shownCount(event.index)} entries verified.</li>\n`.text;
    }
  } catch (error) {
    const problem = problemLine(`The log is not verified: ${await context.problemOf(error)}`);
    yield `</ul>\n${problem.text}`;
    return;
  }
  yield `</ul>\n${last === null ? emptyState('The log has no entries.').text : intact(last).text}`;
}

function intact({ index, hash }: LoggedEvent): Html {
  return html`<p class="notice ok">The log is intact: each of its ${shownCount(index)} entries continues the one before.</p>
${facts([['Last hash', idValue(hash)]])}<p>Compare it with a copy that you keep elsewhere: an authority could show another log that is intact, too.</p>
<p class="actions"><a href="./audit">Back to the entries</a></p>`;
}

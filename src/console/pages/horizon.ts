/** *Horizon*: what lapses, and when. */

import { shownCount } from '../../base/counts.ts';
import { needsPerson } from '../../pages/dashboard/dashboard.ts';
import { type Html, html } from '../../pages/ui/html.ts';
import { emptyState, section } from '../../pages/ui/parts.ts';
import { table } from '../../pages/ui/table.ts';
import { exactTime, timeText } from '../../pages/ui/values.ts';
import type { Lapsing, LapsingKind } from '../../protocol/rows/dashboard.ts';
import { definePage } from '../page.ts';

export const HORIZON = definePage({
  path: '/horizon',
  title: 'Horizon',
  async show({ client }) {
    const { as_of, lapsing } = await client.readHorizon();
    if (lapsing.length === 0) return { body: emptyState('Nothing lapses.') };
    return {
      body: html`${section('kinds', 'What lapses', kindsTable(lapsing))}${section('weeks', 'By week', weeks(lapsing))}<p class="small muted">Counted at ${exactTime(as_of)}.</p>`,
    };
  },
});

/** What each kind is called, what to do before it lapses, and its name where there is little room. */
const KINDS: Readonly<Record<LapsingKind, readonly [name: string, cure: string, short: string]>> = {
  delegation: [
    'Delegation of the root key',
    'Run mesh-na genesis renew, with the root key',
    'Delegation',
  ],
  activation: ['The current authority key: a staged one takes over', 'Nothing', 'Next key'],
  overlap: ['Signatures of the previous authority key', 'See who has not followed', 'Overlap'],
  tls: ['TLS certificate', 'Replace the files; the authority reads them again', 'TLS'],
  certificate: ['Node certificates', 'Nothing: nodes renew by themselves', 'Nodes'],
  treaty: ['Treaties', 'Renew them', 'Treaties'],
  attestation: ['Attestations', 'Renew them', 'Attestations'],
  partner: [
    'Feeds that cannot be fetched become stale',
    'See why in the list of treaties',
    'Feeds',
  ],
  policy: ['Data-license policies', 'Publish a new one', 'Policies'],
};

/** What lapses before then unless a person does something. */
export function needingPerson(lapsing: readonly Lapsing[], before: number): Lapsing[] {
  return lapsing.filter(({ kind, soonest }) => needsPerson(kind) && Date.parse(soonest) < before);
}

export function kindsTable(lapsing: readonly Lapsing[]): Html {
  return table({
    id: 'kinds',
    caption: 'Soonest first',
    keyOf: ({ kind }) => kind,
    rows: lapsing.toSorted((a, b) => (a.soonest < b.soonest ? -1 : 1)),
    columns: [
      { head: 'What', kind: 'first', isHead: true, cell: ({ kind }) => nameOf(kind) },
      { head: 'Count', kind: 'number', cell: ({ count }) => shownCount(count) },
      { head: 'Soonest', cell: ({ soonest }) => timeText(soonest) },
      { head: 'What to do', cell: ({ kind }) => KINDS[kind][1] },
    ],
  });
}

/** The pages that list them. */
const PAGES: Readonly<Partial<Record<LapsingKind, string>>> = {
  activation: './succession',
  overlap: './succession',
  certificate: './nodes?sort=expires',
  treaty: './treaties',
  attestation: './attestations',
};

function nameOf(kind: LapsingKind): Html {
  const [name] = KINDS[kind];
  const page = PAGES[kind];
  return page === undefined ? html`${name}` : html`<a href="${page}">${name}</a>`;
}

/** Most weeks have nothing of most kinds. */
function shownIfAny(count: number): string {
  return count === 0 ? '' : shownCount(count);
}

function weeks(lapsing: readonly Lapsing[]): Html {
  const beginnings = new Set(lapsing.flatMap((row) => row.weeks.map(({ week_from }) => week_from)));
  return table({
    id: 'weeks',
    caption: 'A week begins on Monday, 00:00 UTC',
    keyOf: (from) => from,
    rows: [...beginnings].toSorted(),
    columns: [
      { head: 'Week from', isHead: true, cell: (from) => from.slice(0, 'YYYY-MM-DD'.length) },
      ...lapsing.map(({ kind, weeks: counted }) => ({
        head: KINDS[kind][2],
        kind: 'number' as const,
        cell: (from: string) =>
          shownIfAny(counted.find(({ week_from }) => week_from === from)?.count ?? 0),
      })),
    ],
  });
}

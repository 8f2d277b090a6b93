/** What ends on each of the next days, as a strip of a calendar. */

import { counted, shownCount } from '../../base/counts.ts';
import {
  type HorizonSummary,
  LAPSING_KINDS,
  type LapsingKind,
} from '../../protocol/rows/dashboard.ts';
import { type Html, html } from '../ui/html.ts';
import { emptyState } from '../ui/parts.ts';

const WEEKDAYS = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone: 'UTC' });

/** Whether a person has to do something before it ends: nodes renew by themselves, and a staged key takes over. */
export function needsPerson(kind: LapsingKind): boolean {
  return kind !== 'certificate' && kind !== 'activation';
}

export function weekSection({ within_week, within_month, days }: HorizonSummary): Html {
  const needing = days.reduce((sum, day) => sum + countNeeding(day), 0);
  return html`<section class="section" aria-labelledby="week-heading">
<div class="section-head"><h2 id="week-heading">Ending soon</h2><p class="small muted"><strong>${counted(needing, 'needs', 'need')}</strong> a person within eight days. In all, <span data-field="horizon_summary.within_week">${shownCount(within_week)}</span> end within a week, <span data-field="horizon_summary.within_month">${shownCount(within_month)}</span> within thirty days</p></div>
${strip(days)}</section>`;
}

type Day = HorizonSummary['days'][number];

function countNeeding({ kinds }: Day): number {
  const needing = LAPSING_KINDS.filter(needsPerson);
  return needing.reduce((sum, kind) => sum + (kinds[kind] ?? 0), 0);
}

function strip(days: readonly Day[]): Html {
  if (days.every(({ count }) => count === 0)) return emptyState('Nothing ends within a week.');
  return html`<ol class="week">${days.map(
    (day) =>
      html`<li class="${day.count === 0 ? 'quiet' : ''} ${countNeeding(day) > 0 ? 'ending' : ''}"><span class="day">${WEEKDAYS.format(Date.parse(day.date))} ${day.date.slice(5)}</span>${kindsOf(day)}</li>`,
  )}</ol>`;
}

const NAMES: Readonly<Record<LapsingKind, readonly [one: string, many: string]>> = {
  delegation: ['delegation', 'delegations'],
  activation: ['key takes over', 'keys take over'],
  overlap: ['overlap of keys', 'overlaps of keys'],
  tls: ['TLS certificate', 'TLS certificates'],
  certificate: ['certificate', 'certificates'],
  treaty: ['treaty', 'treaties'],
  attestation: ['attestation', 'attestations'],
  partner: ['feed not fetched', 'feeds not fetched'],
  policy: ['policy', 'policies'],
};

function kindsOf({ count, kinds }: Day): Html[] {
  if (count === 0) return [html`<span class="muted">–</span>`];
  return LAPSING_KINDS.flatMap((kind) => {
    const found = kinds[kind] ?? 0;
    return found === 0 ? [] : [html`<span>${counted(found, ...NAMES[kind])}</span>`];
  });
}

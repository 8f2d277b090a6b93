/** What ends on each of the next days, as a strip of a calendar. */
import type { HorizonSummary } from '../protocol/rows/horizon.ts';
import { shownCount } from './counts.ts';
import { type Html, html, keyed } from './html.ts';

const WEEKDAYS = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone: 'UTC' });

export function weekSection({ within_week, within_month, days }: HorizonSummary): Html {
  return html`<section class="section" aria-labelledby="week-heading">
<div class="section-head"><h2 id="week-heading">Ending within a week</h2>${keyed('ending', html`<p class="small muted">Certificates and agreements: <strong data-field="horizon_summary.within_week">${shownCount(within_week)}</strong>; within thirty days: <span data-field="horizon_summary.within_month">${shownCount(within_month)}</span></p>`)}</div>
${keyed('week', strip(days))}</section>
`;
}

/** A day on which more ends has a higher bar. */
function strip(days: HorizonSummary['days']): Html {
  const most = Math.max(1, ...days.map(({ count }) => count));
  return html`<ol class="week">${days.map(
    ({ date, count }) =>
      html`<li><span class="day">${WEEKDAYS.format(Date.parse(date))} ${date.slice(5)}</span><strong>${shownCount(count)}</strong>${bar(count / most)}</li>`,
  )}</ol>`;
}

function bar(part: number): Html {
  return html`<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" focusable="false"><rect x="0" y="0" width="${Math.round(part * 100)}" height="4"/></svg>`;
}

export const WEEK_STYLE = `
.week { display: grid; grid-template-columns: repeat(8, minmax(0, 1fr)); gap: 0.5rem; padding: 0; list-style: none; }
.week li { display: grid; gap: 0.125rem; padding: 0.5rem 0.75rem; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
.week .day { font-size: 0.8125rem; color: var(--muted); }
.week strong { font-size: 1.25rem; }
.week svg { width: 100%; height: 4px; background: var(--sunken); }
.week rect { fill: var(--warn); }
@media (max-width: 40rem) {
  .week { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .week li { grid-template-columns: 6rem 3.5rem minmax(0, 1fr); align-items: center; border-width: 0 0 1px; border-radius: 0; }
  .week strong { font-size: 1rem; text-align: end; padding-inline-end: 0.75rem; }
}
`;

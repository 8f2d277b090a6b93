/** *Health*: how the authority looks from this machine, its instances, and its last day. */
import { formatInstant } from '../../base/timestamp.ts';
import { instancesSection } from '../../pages/dashboard/dashboard.ts';
import {
  DRAWN_SERIES,
  drawnHistory,
  HISTORY_RANGES,
} from '../../pages/dashboard/history-section.ts';
import { type Html, html } from '../../pages/ui/html.ts';
import { badge, section } from '../../pages/ui/parts.ts';
import { table } from '../../pages/ui/table.ts';
import { capital, withTimes } from '../../pages/ui/values.ts';
import { type History, MOST_SERIES, type SeriesName } from '../../protocol/rows/history.ts';
import type { Check, Context } from '../context.ts';
import { definePage } from '../page.ts';

export const HEALTH = definePage({
  path: '/health',
  title: 'Health',
  async show(context) {
    const [found, dashboard, history] = await Promise.all([
      context.checks(),
      context.publicClient.readDashboard().catch(() => null),
      historyOfDay(context).catch(() => null),
    ]);
    return {
      body: html`${section(
        'checks',
        'What this machine sees',
        checksTable(found),
      )}${instancesSection(dashboard?.instances)}${drawnHistory(DAY, history, context.url).section}`,
    };
  },
});

const DAY = { range: '24h', isTrimmed: true, hasNumbers: false } as const;

/** What the dashboard draws; one answer has only some of its series. */
async function historyOfDay({ publicClient, now }: Context): Promise<History> {
  const period = { step: HISTORY_RANGES[DAY.range].step, to: formatInstant(now()) };
  const read = (series: readonly SeriesName[]) =>
    publicClient.readHistory({ series: series.join(','), ...period });
  const [history, rest] = await Promise.all([
    read(DRAWN_SERIES.slice(0, MOST_SERIES)),
    read(DRAWN_SERIES.slice(MOST_SERIES)),
  ]);
  return { ...history, series: [...history.series, ...rest.series] };
}

const TONES: Readonly<Record<Check['outcome'], string>> = {
  ok: 'ok',
  warning: 'warn',
  wrong: 'danger',
  unknown: 'neutral',
};
const NAMES: Readonly<Record<string, string>> = {
  crl: 'Revocation list',
  feed: 'Revocation feed',
  public_url: 'Public URL',
};
const WORST_FIRST = ['wrong', 'warning', 'unknown', 'ok'];

function checksTable(found: readonly Check[]): Html {
  // The overview has the posture in full.
  const rows = found.filter(({ check }) => check !== 'posture');
  return table({
    id: 'checks',
    caption: 'The checks of mesh-na doctor that need only its address',
    keyOf: ({ check }) => check,
    rows: rows.toSorted((a, b) => WORST_FIRST.indexOf(a.outcome) - WORST_FIRST.indexOf(b.outcome)),
    columns: [
      {
        head: 'Check',
        isHead: true,
        kind: 'nowrap',
        cell: ({ check }) => NAMES[check] ?? capital(check),
      },
      {
        head: 'Outcome',
        cell: ({ outcome }) =>
          badge({ tone: TONES[outcome], word: outcome === 'ok' ? 'OK' : outcome }),
      },
      {
        head: 'Found',
        kind: 'wide words',
        cell: ({ found: sentence }) => html`<span>${withTimes(sentence)}</span>`,
      },
      ...(rows.every(({ cure }) => cure === null)
        ? []
        : [{ head: 'What to do', kind: 'wide', cell: ({ cure }: Check) => cure ?? '' }]),
    ],
  });
}

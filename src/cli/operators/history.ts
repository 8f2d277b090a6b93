/** `mesh-na history` and `mesh-na horizon`: what the service counted over time, and what expires when. */

import type { Command } from 'commander';
import { inWords } from '../../base/duration.ts';
import type { Horizon } from '../../protocol/rows/dashboard.ts';
import {
  type History,
  type HistorySeries,
  SERIES_NAMES,
  type SeriesKind,
  type SeriesName,
  STEP_NAMES,
} from '../../protocol/rows/history.ts';
import { routeCommand } from '../connection/route-command.ts';
import { ANYONE, publicClient, type Reach } from '../connection/server.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { timeAgo } from '../kernel/options.ts';
import { asJson, type Line, printLines, printResult } from '../kernel/output.ts';
import { column, type TableOptions, tableOf, timeColumn } from '../kernel/table.ts';

const USUAL: readonly SeriesName[] = ['heartbeats', 'active_nodes', 'joins', 'revocations'];
const LONGEST_LINE = 60;

const HISTORY = [
  option('--series <name>', `what to show (repeatable; default: ${USUAL.join(', ')})`, {
    choices: SERIES_NAMES,
    many: true,
  }),
  option('--since <time>', 'from this time on, or a duration ago', {
    parse: timeAgo,
    shown: '24h',
  }),
  option('--until <time>', 'up to this time, or a duration ago (default: now)', { parse: timeAgo }),
  option('--step <length>', 'length of a step (default: fits the time)', { choices: STEP_NAMES }),
  option('--csv', 'print a line for each step, for spreadsheets', { conflicts: 'json' }),
] as const;

export function addHistoryCommand(program: Command): void {
  define(program, 'history', {
    about: 'show what the service counted and measured over time',
    asks: ANYONE,
    options: HISTORY,
    examples: [
      'mesh-na history --since 7d',
      'mesh-na history --series heartbeats --series heartbeat_time --since 24h',
      'mesh-na history --series crl_length --since 90d --step 1d --csv',
    ],
    run,
  });
}

async function run(options: OptionsIn<typeof HISTORY> & Reach): Promise<void> {
  const { series = USUAL, since: from = timeAgo('24h'), until: to, step } = options;
  const history = await publicClient(options).readHistory({
    series: series.join(','),
    from,
    to,
    step,
  });
  if (options.csv) printLines(csvOf(history));
  else printResult(options, asJson(history), textOf(history));
}

/** A line for each series: its course, its largest value, and of a count the sum. */
function textOf({ from, to, step_seconds, recorded_minutes, series }: History) {
  const minutes = recorded_minutes.reduce((sum, count) => sum + count, 0);
  const most = (recorded_minutes.length * step_seconds) / 60;
  return [
    `From ${from} to ${to}, in steps of ${inWords(step_seconds)}; ${minutes} of ${most} minutes were recorded.`,
    '',
    ...tableOf(
      [
        column('SERIES', ({ name }: HistorySeries) => name),
        column('COURSE', (row: HistorySeries) =>
          sparkline(shownValues(row), LONGEST_LINE, row.kind),
        ),
        column('LARGEST', (row: HistorySeries) => largest(row)),
        column('SUM', ({ kind, count }: HistorySeries) => (kind === 'count' ? sum(count) : '')),
      ],
      series,
    ),
  ];
}

/** Of a time, what nearly all operations took at most. */
function shownValues({ count, mean, p95, kind }: HistorySeries): readonly (number | null)[] {
  if (kind === 'count') return count ?? [];
  return (kind === 'level' ? mean : p95) ?? [];
}

function largest(row: HistorySeries): number | string {
  const values = shownValues(row).filter((value) => value !== null);
  return values.length === 0 ? '-' : Math.max(...values);
}

function sum(values: readonly (number | null)[] = []): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}

const MEMBERS = ['count', 'mean', 'max', 'p50', 'p95', 'p99'] as const;

/** A value that was not recorded is an empty field. */
function csvOf({ from, step_seconds, recorded_minutes, series }: History): string[] {
  const columns = series.flatMap((row) =>
    MEMBERS.flatMap((member) => {
      const values = row[member];
      return values === undefined ? [] : [{ title: `${row.name}_${member}`, values }];
    }),
  );
  const start = Date.parse(from);
  return [
    ['time', 'recorded_minutes', ...columns.map(({ title }) => title)].join(','),
    ...recorded_minutes.map((minutes, i) => {
      const time = new Date(start + i * step_seconds * 1000).toISOString().replace('.000Z', 'Z');
      return [time, minutes, ...columns.map(({ values }) => values[i] ?? '')].join(',');
    }),
  ];
}

const HEIGHTS = '▁▂▃▄▅▆▇█';

/**
 * One character for each value, or for several if there are more than `longest`; their height is relative to the
 * largest. Where nothing is known, there is a blank.
 */
function sparkline(values: readonly (number | null)[], longest: number, kind: SeriesKind): string {
  const perCharacter = Math.ceil(values.length / longest);
  const groups: (number | null)[] = [];
  for (let start = 0; start < values.length; start += perCharacter) {
    groups.push(together(values.slice(start, start + perCharacter), kind));
  }
  const most = Math.max(...groups.map((value) => value ?? 0));
  return groups
    .map((value) => {
      if (value === null) return ' ';
      const height = most === 0 ? 0 : Math.round((value / most) * (HEIGHTS.length - 1));
      return HEIGHTS[height];
    })
    .join('');
}

function together(values: readonly (number | null)[], kind: SeriesKind): number | null {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return null;
  const sum = known.reduce((total, value) => total + value, 0);
  if (kind === 'count') return sum;
  return kind === 'level' ? sum / known.length : Math.max(...known);
}

export function addHorizonCommand(program: Command): void {
  routeCommand(program, 'horizon', 'readHorizon', {
    about: 'show what expires, by kind and week: delegation, TLS, certificates and more',
    options: [WIDE],
    examples: ['mesh-na horizon', 'mesh-na horizon --json'],
    text: (horizon, _, options) => horizonText(horizon, options),
  });
}

/** One row per kind, then one row per week with a column per kind. */
function horizonText({ lapsing }: Horizon, options: TableOptions): Line[] {
  if (lapsing.length === 0) return ['Nothing expires.'];
  const weeks = [...new Set(lapsing.flatMap((row) => row.weeks.map((week) => week.week_from)))];
  return [
    ...tableOf(
      [
        column('LAPSES', ({ kind }) => kind),
        column('COUNT', ({ count }) => count),
        timeColumn('SOONEST', ({ soonest }) => soonest),
      ],
      lapsing,
      options,
    ),
    '',
    ...tableOf(
      [
        column('WEEK FROM', (from: string) => from.slice(0, 'YYYY-MM-DD'.length)),
        ...lapsing.map(({ kind, weeks: counted }) =>
          column(
            kind.toUpperCase(),
            (from: string) => counted.find(({ week_from }) => week_from === from)?.count ?? 0,
          ),
        ),
      ],
      weeks.sort(),
      options,
    ),
  ];
}

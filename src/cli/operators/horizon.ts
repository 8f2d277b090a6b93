/** `mesh-na horizon`: shows what expires, and when. */
import type { Command } from 'commander';
import type { Horizon } from '../../protocol/rows/horizon.ts';
import { routeCommand } from '../connection/route-command.ts';
import { asJson, type OutputOptions, printResult } from '../kernel/output.ts';
import type { Line } from '../kernel/printable.ts';
import { addWideOption, column, type TableOptions, tableOf, timeColumn } from '../kernel/table.ts';

export function addHorizonCommand(program: Command): void {
  routeCommand(program.command('horizon'), 'readHorizon', {
    about: 'show what expires, by kind and week: delegation, TLS, certificates and more',
    more: addWideOption,
    examples: ['mesh-na horizon', 'mesh-na horizon --json'],
    show: (options: OutputOptions & TableOptions, horizon) =>
      printResult(options, asJson(horizon), textOf(horizon, options)),
  });
}

/** One row per kind, then one row per week with a column per kind. */
function textOf({ lapsing }: Horizon, options: TableOptions): Line[] {
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

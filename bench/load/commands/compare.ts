/** `load compare`: two saved runs. */

import { MOST_BYTES } from '../../../src/base/byte-bounds.ts';
import { readArgument } from '../../../src/base/named-file.ts';
import { onLocalFiles } from '../../../src/cli/kernel/errors.ts';
import { asJson, type OutputOptions, printResult } from '../../../src/cli/kernel/output.ts';
import { column, tableOf } from '../../../src/cli/kernel/table.ts';
import { parsed } from '../fleet-folder.ts';
import {
  compareRuns,
  type Difference,
  differingSettings,
  type RunReport,
  readRunReport,
} from '../run-report.ts';

export function runCompare(first: string, second: string, options: OutputOptions): void {
  const [a, b] = [reportIn(first), reportIn(second)];
  const differences = compareRuns(a, b);
  const settings = differingSettings(a, b);
  printResult(options, { first, second, settings, figures: differences.map(asJson) }, [
    ...tableOf<Difference>(
      [
        column('FIGURE', ({ figure }) => figure),
        column('FIRST', (each) => each.first.toFixed(2)),
        column('SECOND', (each) => each.second.toFixed(2)),
        column('CHANGE', ({ percent }) => changeText(percent)),
      ],
      differences,
    ),
    ...settings.map((setting) => `The runs differ in ${setting}.`),
  ]);
}

function changeText(percent: number | null): string {
  if (percent === null) return '';
  return `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %`;
}

function reportIn(file: string): RunReport {
  return onLocalFiles(() => {
    const report = readRunReport(parsed(readArgument(file, MOST_BYTES.record).toString()));
    if (report === null)
      throw new Error(`${file} is not a run saved by npm run load -- run --json`);
    return report;
  });
}

/** What `/metrics` says. */
import assert from 'node:assert/strict';
import { get } from './requests.ts';

interface Measured {
  readonly url: string;
}

/** The value of a series, which is named with its labels; NaN without one. */
export async function metricOf(na: Measured, series: string): Promise<number> {
  const { text } = await get(na, '/metrics');
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? Number.NaN);
}

/** Resolves when the metrics contain the line. */
export async function untilMetric(na: Measured, line: string, meanwhile = () => {}): Promise<void> {
  let text = '';
  for (let looks = 0; looks < 5000; looks += 1) {
    ({ text } = await get(na, '/metrics'));
    if (text.split('\n').includes(line)) return;
    meanwhile();
  }
  const [name = ''] = line.split(/[ {]/);
  assert.fail(`The metrics have no ${line}: ${text.match(new RegExp(`^${name}.*`, 'gm'))}`);
}

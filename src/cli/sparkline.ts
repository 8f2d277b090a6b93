/** The course of a series as characters. */
import type { SeriesKind } from '../protocol/rows/history.ts';

const HEIGHTS = '▁▂▃▄▅▆▇█';

/**
 * One character for each value, or for several if there are more than `longest`; their height is relative to the
 * largest. Where nothing is known, there is a blank.
 */
export function sparkline(
  values: readonly (number | null)[],
  longest: number,
  kind: SeriesKind,
): string {
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

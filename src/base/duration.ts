const UNITS = [
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

/** Seconds in words, such as `1 minute 5 seconds`. */
export function inWords(seconds: number): string {
  let left = Math.max(Math.ceil(seconds), 0);
  const parts = UNITS.flatMap(([name, length]) => {
    const count = Math.floor(left / length);
    left -= count * length;
    return count === 0 ? [] : [`${count} ${name}${count === 1 ? '' : 's'}`];
  });
  return parts.length === 0 ? '0 seconds' : parts.join(' ');
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

const LENGTHS_MS = { s: 1000, m: 60_000, h: HOUR_MS, d: DAY_MS, w: 7 * DAY_MS } as const;
const PARTS = /(\d+)([smhdw])/g;

/** Parses a duration such as `30d` or `1h30m` into milliseconds; null for other text. */
export function parseDuration(text: string): number | null {
  if (!/^(?:\d{1,4}[smhdw]){1,4}$/.test(text)) return null;
  return [...text.matchAll(PARTS)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * LENGTHS_MS[unit as keyof typeof LENGTHS_MS],
    0,
  );
}

/** A relative time in a single unit, such as `in 6d` or `3m ago`. */
export function fromNow(ms: number): string {
  const distance = Math.abs(ms);
  // At least two units, so that the rounding error stays small.
  const [unit = 's', length = 1000] =
    (['d', 'h', 'm'] as const)
      .map((name) => [name, LENGTHS_MS[name]] as const)
      .find(([, each]) => distance >= 2 * each) ?? [];
  const shown = `${Math.floor(distance / length)}${unit}`;
  return ms < 0 ? `${shown} ago` : `in ${shown}`;
}

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

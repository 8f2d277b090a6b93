const EVERY_MS = 30_000;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The distance in seconds from which each unit is used. */
const UNITS = [
  [2 * 365 * DAY, 365 * DAY, 'year'],
  [60 * DAY, 30 * DAY, 'month'],
  [DAY, DAY, 'day'],
  [HOUR, HOUR, 'hour'],
  [0, MINUTE, 'minute'],
] as const;

const words = new Intl.RelativeTimeFormat('en', { numeric: 'always' });

/** Shows a relative time next to each timestamp. */
export function relateTimes(): void {
  relate();
  document.addEventListener('live-update', relate);
  setInterval(relate, EVERY_MS);
}

function relate(): void {
  const now = Date.now();
  for (const time of document.querySelectorAll('time')) {
    const seconds = (Date.parse(time.dateTime) - now) / 1000;
    if (Number.isFinite(seconds)) time.dataset.relative = inWords(seconds);
  }
}

function inWords(seconds: number): string {
  const distance = Math.abs(seconds);
  if (distance < MINUTE) return 'now';
  const [, length, unit] = UNITS.find(([least]) => distance >= least) ?? UNITS[4];
  return words.format(Math.sign(seconds) * Math.floor(distance / length), unit);
}

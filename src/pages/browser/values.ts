/** What scripts add to ids and times. */
import { addIdButtons, offerCopies } from './copy.ts';

export function prepare(root: ParentNode): void {
  addIdButtons(root);
  relateTimes(root);
}

export function prepareValues(): void {
  prepare(document);
  offerCopies();
  setInterval(() => relateTimes(document), EVERY_MS);
}

const EVERY_MS = 30_000;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Units of more than a day are used from two of them on. */
const UNITS = [
  [365 * DAY, 'year'],
  [30 * DAY, 'month'],
  [DAY, 'day'],
  [HOUR, 'hour'],
  [MINUTE, 'minute'],
] as const;

const words = new Intl.RelativeTimeFormat('en', { numeric: 'always' });

/** Shows a relative time next to each timestamp. */
function relateTimes(root: ParentNode): void {
  const now = Date.now();
  for (const time of root.querySelectorAll('time')) {
    const seconds = (Date.parse(time.dateTime) - now) / 1000;
    if (!Number.isFinite(seconds)) continue;
    time.dataset.relative = inWords(seconds);
    time.title = time.dateTime;
  }
}

function inWords(seconds: number): string {
  const distance = Math.abs(seconds);
  const found = UNITS.find(([length]) => distance >= (length > DAY ? 2 * length : length));
  if (found === undefined) return 'now';
  const [length, unit] = found;
  return words.format(Math.sign(seconds) * Math.floor(distance / length), unit);
}

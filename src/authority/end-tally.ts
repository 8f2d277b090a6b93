/** Upcoming expirations, counted by week [core-4-20]. Instants are in milliseconds since the epoch. */
import { DAY_MS } from '../base/duration.ts';
import { formatInstant } from '../base/timestamp.ts';
import {
  type Horizon,
  type HorizonSummary,
  LAPSING_KINDS,
  type Lapsing,
  type LapsingKind,
} from '../protocol/rows/dashboard.ts';

const WEEK = 7 * DAY_MS;
/** The dates that a week from any time of day includes. */
const DAYS = 8;
/** The first Monday after the epoch. */
const FIRST_MONDAY = 4 * DAY_MS;

/** Counts the expirations of one kind. */
export class EndTally {
  soonest = Number.POSITIVE_INFINITY;
  count = 0;
  withinDay = 0;
  withinWeek = 0;
  withinMonth = 0;
  /** For today and each of the seven days after. */
  readonly byDay = new Array<number>(DAYS).fill(0);
  readonly #byWeek = new Map<number, number>();
  readonly #now: number;

  constructor(now: number) {
    this.#now = now;
  }

  add(end: number): void {
    this.count += 1;
    if (end < this.soonest) this.soonest = end;
    const left = end - this.#now;
    if (left <= DAY_MS) this.withinDay += 1;
    if (left <= WEEK) this.withinWeek += 1;
    if (left <= 30 * DAY_MS) this.withinMonth += 1;
    const day = Math.max(0, Math.floor(end / DAY_MS) - Math.floor(this.#now / DAY_MS));
    if (day < DAYS) this.byDay[day] = (this.byDay[day] ?? 0) + 1;
    const week = Math.floor((end - FIRST_MONDAY) / WEEK);
    this.#byWeek.set(week, (this.#byWeek.get(week) ?? 0) + 1);
  }

  /** Counts only what is still in force. */
  addIfAhead(end: number): void {
    if (end > this.#now) this.add(end);
  }

  weeks(): Lapsing['weeks'] {
    return [...this.#byWeek]
      .sort(([a], [b]) => a - b)
      .map(([week, count]) => ({ week_from: formatInstant(week * WEEK + FIRST_MONDAY), count }));
  }
}

export type EndTallies = { readonly [Kind in LapsingKind]?: EndTally };

/** `asOf` is when the expirations were counted. */
export function horizonOf(tallies: EndTallies, asOf: number): Horizon {
  return { as_of: formatInstant(asOf), lapsing: LAPSING_KINDS.flatMap((kind) => rowOf(kind)) };

  function rowOf(kind: LapsingKind): Lapsing[] {
    const tally = tallies[kind];
    if (tally === undefined || tally.count === 0) return [];
    const { count, soonest } = tally;
    return [{ kind, count, soonest: formatInstant(soonest), weeks: tally.weeks() }];
  }
}

/** `asOf` is when the expirations were counted. */
export function horizonSummary(tallies: EndTallies, asOf: number): HorizonSummary {
  const all = Object.values(tallies);
  const sum = (of: (tally: EndTally) => number) => all.reduce((total, each) => total + of(each), 0);
  return {
    within_day: sum(({ withinDay }) => withinDay),
    within_week: sum(({ withinWeek }) => withinWeek),
    within_month: sum(({ withinMonth }) => withinMonth),
    days: Array.from({ length: DAYS }, (_, day) => ({
      date: formatInstant(asOf + day * DAY_MS).slice(0, 'YYYY-MM-DD'.length),
      count: sum(({ byDay }) => byDay[day] ?? 0),
      kinds: Object.fromEntries(
        Object.entries(tallies)
          .map(([kind, { byDay }]) => [kind, byDay[day] ?? 0] as const)
          .filter(([, count]) => count > 0),
      ),
    })),
  };
}

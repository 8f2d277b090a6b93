/** The history of the service [core-4-22]: what is counted, for how long, and the answer. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';

/** How finely each period is kept: a row for each minute, hour and day. */
export const HISTORY_LEVELS = [
  { seconds: 60, rows: 2880 },
  { seconds: 3600, rows: 2160 },
  { seconds: 86_400, rows: 1826 },
] as const;

/** The steps that can be asked for, in seconds; each is a multiple of one level. */
export const HISTORY_STEPS = {
  '1m': 60,
  '5m': 300,
  '15m': 900,
  '1h': 3600,
  '6h': 21_600,
  '1d': 86_400,
} as const;

export type HistoryStep = keyof typeof HISTORY_STEPS;
export const STEP_NAMES = Object.keys(HISTORY_STEPS) as HistoryStep[];

/** The most steps and series in one answer. */
export const MOST_STEPS = 1500;
export const MOST_SERIES = 12;

/**
 * `count` adds up. `level` is measured once a minute on each instance. `time` is how long each of many operations took.
 */
export type SeriesKind = 'count' | 'level' | 'time';

interface SeriesOf<Name extends string> {
  readonly name: Name;
  readonly kind: SeriesKind;
  readonly meaning: string;
}

function series<const Name extends string>(
  kind: SeriesKind,
  name: Name,
  meaning: string,
): SeriesOf<Name> {
  return { kind, name, meaning };
}

/** Stored rows have the values in this order, so new series are added at the end and none is ever removed. */
export const SERIES = [
  series('count', 'requests', 'requests answered'),
  series('count', 'heartbeats', 'heartbeats accepted'),
  series('count', 'refused_400', 'answers 400'),
  series('count', 'refused_401', 'answers 401'),
  series('count', 'refused_403', 'answers 403'),
  series('count', 'refused_404', 'answers 404'),
  series('count', 'refused_409', 'answers 409'),
  series('count', 'refused_429', 'answers 429'),
  series('count', 'refused_other', 'other answers from 400 to 499'),
  series('count', 'failed', 'answers from 500 on'),
  series('count', 'shed', 'node requests refused because they had waited too long'),
  series('count', 'invites', 'invites created'),
  series('count', 'joins', 'certificates issued to joining nodes'),
  series('count', 'renewals', 'certificates renewed'),
  series('count', 'revocations', 'certificates revoked'),
  series('count', 'policies_activated', 'policies published or rolled back'),
  series('count', 'operator_keys_added', 'operator keys added'),
  series('count', 'operator_keys_revoked', 'operator keys revoked'),
  series('count', 'restores', 'restores of the state'),
  series('count', 'treaties_issued', 'treaties issued'),
  series('count', 'treaties_revoked', 'treaties revoked'),
  series('count', 'attestations_issued', 'attestations issued'),
  series('count', 'attestations_revoked', 'attestations revoked'),
  series('count', 'feeds_imported', 'revocation feeds imported'),
  series('count', 'feeds_rejected', 'revocation feeds rejected'),
  series('count', 'attestations_accepted', 'attestations verified'),
  series('count', 'attestations_refused', 'attestations that did not verify'),
  series('count', 'verifications', 'verifications of any kind answered'),
  series('count', 'operator_auth_failures', 'failed authentications of operators'),
  series('count', 'node_auth_failures', 'failed authentications of nodes'),
  series('count', 'events', 'entries added to the audit log'),
  series('count', 'clock_steps', 'times the system clock was set'),
  series('level', 'active_nodes', 'active nodes'),
  series('level', 'silent_nodes', 'silent nodes'),
  series('level', 'unhealthy_nodes', 'nodes that report a problem'),
  series('level', 'certificates', 'certificates issued so far'),
  series('level', 'crl_length', 'certificates revoked so far'),
  series('level', 'memory', 'bytes of memory of an instance'),
  series('level', 'event_loop_delay', 'longest delay of the event loop in a minute, microseconds'),
  series('level', 'disk_free', 'bytes free on the disk of the data folder'),
  series('time', 'heartbeat_time', 'time to answer a heartbeat'),
  series('time', 'enrollment_time', 'time to answer a join, a renewal or an agent'),
  series('time', 'operator_time', 'time to answer an operator'),
  series('time', 'verification_time', 'time to answer a verification or a question about trust'),
  series('time', 'other_time', 'time to answer any other request'),
  series('time', 'commit_time', 'time for a change to reach the disk'),
  series('time', 'flush_time', 'time for last contacts to reach the disk'),
  series('count', 'authority_keys_activated', 'successions of the authority key'),
] as const;

export type SeriesName = (typeof SERIES)[number]['name'];
export const SERIES_NAMES = SERIES.map(({ name }) => name);

/** What one instance counted in one minute. */
export interface HistoryPart {
  /** Identifies the process. */
  readonly source: number;
  /** Increases by 1 with each part of the process, so that a part that is sent twice counts once. */
  readonly number: number;
  /** Whole minutes since the epoch. */
  readonly minute: number;
  /** The values of all series, in the order of `SERIES`. */
  readonly cells: readonly number[];
}

/** What to read; times are in milliseconds since the epoch. */
export interface HistoryQuestion {
  readonly series: readonly SeriesName[];
  readonly from: number;
  readonly to: number;
  readonly step: HistoryStep;
}

/** One value for each step; null where nothing was recorded. */
const Values = Type.Optional(Type.Array(Type.Union([Type.Integer(), Type.Null()])));

export const HistorySeries = Type.Object({
  name: Type.Enum([...SERIES_NAMES]),
  kind: Type.Enum(['count', 'level', 'time']),
  /** Of a count; and how many operations a time is about. */
  count: Values,
  /** Of a level. */
  mean: Values,
  max: Values,
  /** Of a time, in microseconds. */
  p50: Values,
  p95: Values,
  p99: Values,
});

export const History = Type.Object({
  /** The beginning of the first step. */
  from: Datetime,
  /** The end of the last step. */
  to: Datetime,
  step_seconds: Type.Integer(),
  /** For each step, how many of its minutes were recorded. */
  recorded_minutes: Type.Array(Type.Integer()),
  series: Type.Array(HistorySeries),
});

export type HistorySeries = Static<typeof HistorySeries>;
export type History = Static<typeof History>;

/** The values of a row of the history: where each series has its own, and how two rows become one. */

/** The bounds of histograms, in seconds: for operations that clients wait for. */
export const REQUEST_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1];
/** The same, for operations that wait for a disk or another instance. */
export const STORE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];

/** The times that wait for a disk have other buckets than those of requests. */
const STORE_TIMES: ReadonlySet<SeriesName> = new Set(['commit_time', 'flush_time']);

/** The upper bounds of the buckets of a time, in seconds; the last bucket has none. */
export function boundsOf(name: SeriesName): readonly number[] {
  return STORE_TIMES.has(name) ? STORE_SECONDS : REQUEST_SECONDS;
}

/** A level has how often it was measured, the sum and the largest. A time has how many fell into each bucket. */
function lengthOf(name: SeriesName, kind: SeriesKind): number {
  if (kind === 'count') return 1;
  return kind === 'level' ? 3 : boundsOf(name).length + 1;
}

export interface Place {
  readonly kind: SeriesKind;
  readonly start: number;
  readonly end: number;
}

const places = new Map<SeriesName, Place>();
let length = 0;
for (const { name, kind } of SERIES) {
  const start = length;
  length += lengthOf(name, kind);
  places.set(name, { kind, start, end: length });
}

/** The number of values in a row. */
export const CELLS = length;

/** The largest of a level is the only value that does not add up. */
const TAKES_LARGEST = new Uint8Array(CELLS);
for (const { kind, end } of places.values()) if (kind === 'level') TAKES_LARGEST[end - 1] = 1;

export function placeOf(name: SeriesName): Place {
  const place = places.get(name);
  if (place === undefined) throw new Error(`There is no series ${name}`);
  return place;
}

/** Adds the values of a row to those of another. Rows of earlier versions of the program may have fewer. */
export function mergeCells(into: number[], cells: readonly number[], from = 0, to = CELLS): void {
  for (let i = from; i < to; i += 1) {
    const [before = 0, more = 0] = [into[i], cells[i]];
    into[i] = TAKES_LARGEST[i] === 1 ? Math.max(before, more) : before + more;
  }
}

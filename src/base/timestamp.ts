/**
 * Timestamps: the record grammar of [core-1-3], the looser one of headers and request bodies [core-1-6],
 * and the canonical `Z` form of everything that is emitted. Instants are milliseconds since the epoch; a
 * fraction of a millisecond carries microseconds.
 */
const GRAMMAR =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt _](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?([Zz]|[+\-\u2212]\d\d(?::?\d\d)?)?)?$/;
/**
 * The forms that are nearly always received: those emitted here, in UTC with a six-digit fraction or none, and those
 * that JavaScript writes, with a three-digit fraction.
 */
const USUAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3}(?:\d{3})?)?Z$/;
const FOUR_CENTURIES = 146_097 * 86_400_000;
const ZERO = 0x30;
const DAYS_IN_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

export interface Datetime {
  /** Milliseconds since the epoch; a datetime without offset is read as UTC. */
  readonly instant: number;
  /** The canonical spelling; a non-zero offset is kept, never converted. */
  readonly text: string;
  /** True when no offset was given. */
  readonly naive: boolean;
}

/** Reads a record's datetime, with or without offset; null when the text is not one. */
export function parseDatetime(text: string): Datetime | null {
  return readDatetime(text, false);
}

/**
 * Parses the timestamp of a header or request body to milliseconds since the epoch; null if it is not one. No offset
 * means UTC, and an offset of hours only is allowed; the text itself is signed verbatim.
 */
export function parseRequestTimestamp(text: string): number | null {
  return readDatetime(text, true)?.instant ?? null;
}

/** A timestamp in a request body that becomes a member of a record. */
export interface RequestDatetime {
  /** Milliseconds since the epoch. */
  readonly instant: number;
  /** The canonical spelling, converted to UTC. */
  readonly text: string;
}

/**
 * Like `parseRequestTimestamp`, and also gives the spelling for a record. Offsets are whole minutes, so the fraction is
 * copied: in a distant year, a number cannot hold microseconds. Null if the year in UTC has more than four digits.
 */
export function parseRequestDatetime(text: string): RequestDatetime | null {
  const datetime = readDatetime(text, true);
  if (datetime === null) return null;
  const { instant } = datetime;
  const fraction = /\.\d+/.exec(datetime.text)?.[0] ?? '';
  const wholeSecond = Math.round((instant - Number(`0${fraction}`) * 1000) / 1000) * 1000;
  const utc = `${new Date(wholeSecond).toISOString().slice(0, 19)}${fraction}Z`;
  return parseDatetime(utc) === null ? null : { instant, text: utc };
}

/** The canonical form: microseconds only when they are not zero, always `Z`. */
export function formatInstant(instant: number): string {
  if (instant === last.instant) return last.text;
  const found = instant === other.instant ? other : { instant, text: textOf(instant) };
  other = last;
  last = found;
  return found.text;
}

export function formatInstantIfAny(instant: number | null): string | null {
  return instant === null ? null : formatInstant(instant);
}

/** A busy server formats the same millisecond many times, between others that differ each time. */
let last = { instant: Number.NaN, text: '' };
let other = last;

function textOf(instant: number): string {
  const floor = Math.floor(instant);
  const rounded = Math.round((instant - floor) * 1000);
  const [whole, micros] = rounded === 1000 ? [floor + 1, 0] : [floor, rounded];
  const iso = new Date(whole).toISOString();
  const fraction = iso.slice(20, 23) + String(micros).padStart(3, '0');
  return fraction === '000000' ? `${iso.slice(0, 19)}Z` : `${iso.slice(0, 19)}.${fraction}Z`;
}

function readDatetime(text: string, hourOffsets: boolean): Datetime | null {
  return USUAL.test(text) ? readUsual(text) : readAnySpelling(text, hourOffsets);
}

/** Reads the parts by position, which is several times as fast as a regular expression. */
function readUsual(text: string): Datetime | null {
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 7);
  const day = digits(text, 8, 10);
  if (!isCalendarDate(year, month, day)) return null;
  const hour = digits(text, 11, 13);
  const minute = digits(text, 14, 16);
  const second = digits(text, 17, 19);
  if (hour > 23 || minute > 59 || second > 59) return null;
  const micros = microsOf(text);
  // `Date.UTC` maps the years 0 to 99 to other years; 400 years always have the same number of days.
  const later = Date.UTC(year + 400, month - 1, day, hour, minute, second);
  return {
    instant: later - FOUR_CENTURIES + micros / 1000,
    text: micros === 0 ? `${text.slice(0, 19)}Z` : inMicros(text),
    naive: false,
  };
}

const LENGTH_OF_SECONDS = '2026-01-01T00:00:00Z'.length;
const LENGTH_OF_MILLIS = '2026-01-01T00:00:00.000Z'.length;

function microsOf(usual: string): number {
  if (usual.length === LENGTH_OF_SECONDS) return 0;
  if (usual.length === LENGTH_OF_MILLIS) return digits(usual, 20, 23) * 1000;
  return digits(usual, 20, 26);
}

function inMicros(usual: string): string {
  return usual.length === LENGTH_OF_MILLIS ? `${usual.slice(0, -1)}000Z` : usual;
}

function digits(text: string, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at += 1) value = value * 10 + text.charCodeAt(at) - ZERO;
  return value;
}

function readAnySpelling(text: string, hourOffsets: boolean): Datetime | null {
  const match = GRAMMAR.exec(text);
  if (match === null) return null;
  const [, year = '', month = '', day = '', hour = '00', minute = '00', second = '00'] = match;
  if (!isCalendarDate(Number(year), Number(month), Number(day))) return null;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  const offset = readOffset(match[8], hourOffsets);
  if (offset === null) return null;
  const micros = (match[7] ?? '').slice(0, 6).padEnd(6, '0');
  const fraction = micros === '000000' ? '' : `.${micros}`;
  const local = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  return {
    instant: Date.parse(`${local}Z`) - offset.minutes * 60_000 + Number(micros) / 1000,
    text: `${local}${fraction}${offset.text}`,
    naive: match[8] === undefined,
  };
}

function isCalendarDate(year: number, month: number, day: number): boolean {
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  if (day > (DAYS_IN_MONTH[month - 1] ?? 0)) return false;
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month !== 2 || day < 29 || leap;
}

function readOffset(
  text: string | undefined,
  hourOffsets: boolean,
): { minutes: number; text: string } | null {
  if (text === undefined) return { minutes: 0, text: '' };
  if (text === 'Z' || text === 'z') return { minutes: 0, text: 'Z' };
  if (text.length === 3 && !hourOffsets) return null;
  const hours = text.slice(1, 3);
  const minutes = text.length === 3 ? '00' : text.slice(-2);
  if (Number(hours) > 23 || Number(minutes) > 59) return null;
  const size = Number(hours) * 60 + Number(minutes);
  if (size === 0) return { minutes: 0, text: 'Z' };
  const sign = text[0] === '+' ? '+' : '-';
  return { minutes: sign === '+' ? size : -size, text: `${sign}${hours}:${minutes}` };
}

/** A canonical datetime for people: `YYYY-MM-DD HH:MM UTC`. */
export function displayTime(datetime: string): string {
  return `${datetime.slice(0, 10)} ${datetime.slice(11, 16)} UTC`;
}

/**
 * Log lines [service-logs]: text, or JSON with exactly the keys named there plus `timestamp`. External text
 * (messages and paths) is redacted before it becomes part of a line: redacting the whole line could let a
 * path remove the members after it.
 */
import { formatInstant } from '../timestamp.ts';

export const LOG_LEVELS = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] as const;
export const LOG_FORMATS = ['text', 'json'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFormat = (typeof LOG_FORMATS)[number];

export interface RequestLine {
  /** Printable, as is the address. */
  readonly request_id: string;
  readonly method: string;
  /** As sent, percent-encoded: a blank in it would forge the fields after it. */
  readonly path: string;
  readonly status: number;
  readonly duration_ms: number;
  readonly remote_addr: string;
}

/**
 * Writes one or more lines, each with its line end; urgent lines are not held back to be written together with others.
 */
export interface LogDestination {
  write(lines: string, isUrgent?: boolean): void;
}

export interface LogSettings {
  readonly level: LogLevel;
  readonly format: LogFormat;
}

export interface LoggerOptions extends LogSettings {
  readonly destination: LogDestination;
  readonly now: () => number;
}

export type Logger = ReturnType<typeof createLogger>;

export function createLogger({ level, format, destination, now }: LoggerOptions) {
  const threshold = LOG_LEVELS.indexOf(level);
  const lineOf = format === 'json' ? jsonLine : textLine;
  const tellsRequests = LOG_LEVELS.indexOf('INFO') >= threshold;
  return {
    /** `area` is the part of the logger name after `mesh.`. */
    write(lineLevel: LogLevel, area: string, message: string): void {
      if (LOG_LEVELS.indexOf(lineLevel) < threshold) return;
      const line = lineOf(formatInstant(now()), lineLevel, area, redact(message));
      // The process may end before the next chance to write.
      destination.write(line, lineLevel === 'CRITICAL');
    },
    /** `at` in milliseconds since the epoch. */
    request(at: number, line: RequestLine): void {
      if (!tellsRequests) return;
      const timestamp = formatInstant(at);
      const { path, printablePath } = shownPath(line.path);
      if (format === 'json') {
        const message = `${line.method} ${path} ${line.status}`;
        destination.write(jsonLine(timestamp, 'INFO', 'access', message, { ...line, path }));
      } else {
        const what = `${printable(line.method)} ${printablePath} ${line.status}`;
        destination.write(`${timestamp} INFO mesh.access ${what}${aboutRequest(line)}\n`);
      }
    },
  };
}

/** Most requests have the same path as the previous one. */
let last = { sent: '', path: '', printablePath: '' };

function shownPath(sent: string): typeof last {
  if (sent !== last.sent) {
    const path = redactPath(sent);
    last = { sent, path, printablePath: printable(path) };
  }
  return last;
}

function aboutRequest({ duration_ms, request_id, remote_addr }: RequestLine): string {
  return ` ${duration_ms}ms request_id=${request_id} remote_addr=${remote_addr}`;
}

function jsonLine(
  timestamp: string,
  level: LogLevel,
  area: string,
  message: string,
  members: Partial<RequestLine> = {},
): string {
  const line = { level, timestamp, logger: `mesh.${area}`, ...members, message };
  return `${JSON.stringify(line)}\n`;
}

function textLine(timestamp: string, level: LogLevel, area: string, message: string): string {
  return `${timestamp} ${level} mesh.${area} ${printable(message)}\n`;
}

const PRINTABLE = /^[ -~]*$/;

/** A message must not forge a second line or control the reader's terminal. */
function printable(message: string): string {
  return PRINTABLE.test(message) ? message : message.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

/**
 * Removes secrets from a text, wherever they occur [service-logs], [core-7]: bearer tokens, values after
 * sensitive names, private-key blocks and paths of key files. Every pattern is linear, because strangers
 * write the text.
 */
const REDACTED = '[REDACTED]';
const ENCODED_REDACTED = encodeURI(REDACTED);

const SUSPECT = /bearer|sig|token|password|secret|private|\.key/i;

const PRIVATE_KEY_BLOCK =
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|(?=\n?$))/g;
const BEARER = /(\bbearer(?:\s|%20|\+)+)[^\s"'\\,;]+/gi;
/** A sensitive name, what separates it from its value, and the quote that opens the value. */
const NAMED =
  /(?:signature|(?<![a-z])sig|token(?:_id)?|password|secret|private[_-]?key)(?:\\*["']|%22|%27)?(?:\s|%20|\+)*(?::|=|%3a|%3d)(?:\s|%20|\+)*(\\*["']|%22|%27)?/gi;
const BARE = /[^\s"'\\,;&}\])]+/y;
const MAYBE_KEY_FILE = /\.key/i;
const KEY_FILE = /(?<![^\s"'=:,;])[^\s"'=:,;]*\.key\b/gi;

export function redact(text: string): string {
  if (!SUSPECT.test(text)) return text;
  const open = text.replace(PRIVATE_KEY_BLOCK, REDACTED).replace(BEARER, `$1${REDACTED}`);
  const unnamed = redactNamed(open);
  // Searching for the start of a path is expensive, and few texts contain one.
  return MAYBE_KEY_FILE.test(unnamed) ? unnamed.replace(KEY_FILE, REDACTED) : unnamed;
}

/** Redacts a request path as sent; percent-encoded parts are also examined in decoded form. */
export function redactPath(path: string): string {
  const plain = path.includes('%') ? decoded(path) : path;
  const redacted = redact(plain);
  if (redacted === plain) return redact(path);
  return plain === path ? redacted : encodeURI(redacted).replaceAll(ENCODED_REDACTED, REDACTED);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function redactNamed(text: string): string {
  let kept = '';
  let at = 0;
  NAMED.lastIndex = 0;
  for (let match = NAMED.exec(text); match !== null; match = NAMED.exec(text)) {
    const start = NAMED.lastIndex;
    const end = endOfValue(text, start, match[1]);
    if (end > start) {
      kept += text.slice(at, start) + REDACTED;
      at = end;
    }
    NAMED.lastIndex = Math.max(end, start);
  }
  return kept + text.slice(at);
}

function endOfValue(text: string, start: number, quote: string | undefined): number {
  if (quote === undefined) {
    BARE.lastIndex = start;
    return BARE.exec(text) === null ? start : BARE.lastIndex;
  }
  const lineEnd = text.endsWith('\n') ? text.length - 1 : text.length;
  if (quote.startsWith('%')) {
    const close = text.indexOf(quote, start);
    return close === -1 ? lineEnd : close;
  }
  const escapes = quote.length - 1;
  const mark = quote.at(-1) ?? '';
  for (let at = text.indexOf(mark, start); at !== -1; at = text.indexOf(mark, at + 1)) {
    let first = at;
    while (first > start && text[first - 1] === '\\') first -= 1;
    // A quote inside the value has one more level of escaping than the one that closes it.
    if ((at - first) % (2 * (escapes + 1)) === escapes) return at - escapes;
  }
  return lineEnd;
}

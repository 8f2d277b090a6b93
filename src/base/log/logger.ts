/**
 * Log lines [service-logs]: text, or JSON with exactly the keys named there plus `timestamp`. External text
 * (messages and paths) is redacted before it becomes part of a line: redacting the whole line could let a
 * path remove the members after it.
 */
import { formatInstant } from '../timestamp.ts';
import { redact, redactPath } from './redact.ts';

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

/**
 * Log lines (spec, Events): text, or JSON with exactly the keys the spec names plus `timestamp`. What
 * comes from outside, messages and paths, is redacted before it becomes part of a line: redacting the
 * line as a whole would let a path take the members behind it away.
 */
import { type DestinationStream, pino } from 'pino';
import { formatInstant } from '../timestamp.ts';
import { redact } from './redact.ts';

export const LOG_LEVELS = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] as const;
export const LOG_FORMATS = ['text', 'json'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFormat = (typeof LOG_FORMATS)[number];

export interface RequestLine {
  readonly request_id: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly duration_ms: number;
  readonly remote_addr: string;
}

export interface Logger {
  /** `area` is the part of the logger name behind `mesh.`. */
  write(level: LogLevel, area: string, message: string): void;
  request(line: RequestLine): void;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  readonly destination: DestinationStream;
  readonly now: () => number;
}

const PINO_LEVEL = {
  DEBUG: 'debug',
  INFO: 'info',
  WARNING: 'warn',
  ERROR: 'error',
  CRITICAL: 'fatal',
} as const satisfies Record<LogLevel, string>;

const SPEC_LEVEL: Readonly<Record<string, LogLevel>> = {
  debug: 'DEBUG',
  info: 'INFO',
  warn: 'WARNING',
  error: 'ERROR',
  fatal: 'CRITICAL',
};

export function createLogger({ level, format, destination, now }: LoggerOptions): Logger {
  const sink = pino(
    {
      level: PINO_LEVEL[level],
      base: null,
      messageKey: 'message',
      timestamp: () => `,"timestamp":"${formatInstant(now())}"`,
      formatters: { level: (label) => ({ level: SPEC_LEVEL[label] ?? label }) },
      ...(format === 'json' ? {} : { hooks: { streamWrite: textLine } }),
    },
    destination,
  );
  return {
    write(lineLevel, area, message) {
      sink[PINO_LEVEL[lineLevel]]({ logger: `mesh.${area}` }, redact(message));
    },
    request(line) {
      if (!sink.isLevelEnabled('info')) return;
      const path = redactedPath(line.path);
      const message = `${line.method} ${path} ${line.status}`;
      if (format === 'json') sink.info({ logger: 'mesh.access', ...line, path }, message);
      // Every request has a line: as text it is written at once, not as JSON that is then taken apart.
      else destination.write(accessLine(formatInstant(now()), message + aboutRequest(line)));
    },
  };
}

/** Most requests ask for the path that was asked for last. */
let lastPath = '';
let lastRedacted = '';

function redactedPath(path: string): string {
  if (path !== lastPath) {
    lastRedacted = redact(path);
    lastPath = path;
  }
  return lastRedacted;
}

function accessLine(timestamp: string, message: string): string {
  return `${timestamp} INFO mesh.access ${printable(message)}\n`;
}

function aboutRequest({ duration_ms, request_id, remote_addr }: RequestLine): string {
  return ` ${duration_ms}ms request_id=${request_id} remote_addr=${remote_addr}`;
}

/** The members of a text line stand in this order, because nothing else is ever logged in text. */
const MEMBERS =
  /^\{"level":"(\w+)","timestamp":"([^"]+)","logger":"([^"]+)","message":"(.*)"\}\n$/s;

function textLine(json: string): string {
  const [, level, timestamp, logger, quoted = ''] = MEMBERS.exec(json) ?? [];
  const message = quoted.includes('\\') ? (JSON.parse(`"${quoted}"`) as string) : quoted;
  return `${timestamp} ${level} ${logger} ${printable(message)}\n`;
}

const PRINTABLE = /^[ -~]*$/;

/** A message cannot forge another line or move the reader's terminal. */
function printable(message: string): string {
  return PRINTABLE.test(message) ? message : message.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '?');
}

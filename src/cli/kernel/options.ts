/** Options that several commands share. */
import type { EventEmitter } from 'node:events';
import { type Command, InvalidArgumentError } from 'commander';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { HOUR_MS, parseDuration } from '../../base/duration.ts';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { publicKeyProblem, saysPrivate } from '../../base/keys/read-key.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { formatInstant, parseRequestTimestamp } from '../../base/timestamp.ts';
import { parsed } from '../../client/received.ts';
import { usageFailure } from './errors.ts';

export const HIGHEST_PORT = 65_535;

/** Parses a whole number from `least` to `highest`. */
export function wholeNumber(
  highest = Number.MAX_SAFE_INTEGER,
  least = 1,
): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^[0-9]+$/.test(text) && value >= least && value <= highest) return value;
    const bound =
      highest === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${highest}`;
    throw new InvalidArgumentError(`It must be a whole number, ${bound}.`);
  };
}

/** An empty variable is none, as for `serve`. */
export function ignoreEmptyVariables(command: Command): void {
  const emitter = command as unknown as EventEmitter;
  for (const option of command.options) {
    const event = `optionEnv:${option.name()}`;
    const applied = emitter.listeners(event);
    emitter.removeAllListeners(event);
    emitter.on(event, (value) => {
      if (value !== '') for (const apply of applied) apply(value);
    });
  }
}

const REPEATABLE = new WeakSet<object>();

/** Marks the parser of an option that collects its values. */
export function repeatable<Parse extends (text: string, earlier: never) => unknown>(parse: Parse) {
  REPEATABLE.add(parse);
  return parse;
}

/** Collects the parsed values of a repeatable option. */
export function collectAs<T>(parse: (text: string) => T) {
  return collectAll((text) => [parse(text)]);
}

/** The same if one text can have several values. */
export function collectAll<T>(parse: (text: string) => readonly T[]) {
  return repeatable((text: string, earlier: readonly T[] = []): readonly T[] => [
    ...earlier,
    ...parse(text),
  ]);
}

/** Refuses an option that is given twice, if it is not repeatable: one value would silently win over the other. */
export function refuseRepeated(command: Command): void {
  const given = new Set<string>();
  for (const option of command.options) {
    const { parseArg, negate } = option;
    if ((option.isBoolean() && !negate) || (parseArg && REPEATABLE.has(parseArg))) continue;
    command.on(`option:${option.name()}`, () => {
      const name = option.attributeName();
      if (given.has(name)) command.error(`${option.long} is given twice`);
      given.add(name);
    });
  }
}

export function publicKey(text: string): string {
  if (isPublicKey(text)) return text;
  // The other error repeats the text.
  if (saysPrivate(text)) {
    throw usageFailure('This is a private key: give the public key from the .pub file');
  }
  throw new InvalidArgumentError(`It must be a public key, and ${publicKeyProblem(text)}.`);
}

/** Parses `key` or `id=key`; a key alone may end in `=`. */
export function namedKey(text: string) {
  if (isPublicKey(text)) return { id: null, key: text };
  const mark = text.indexOf('=');
  return { id: text.slice(0, Math.max(mark, 0)), key: publicKey(text.slice(mark + 1)) };
}

/** Parses a JSON object; its number tokens are preserved. */
export function jsonObject(text: string): JsonObject {
  const value = parsed(text);
  if (isJsonObject(value)) return value;
  throw new InvalidArgumentError('It must be a JSON object.');
}

/** Parses a time that is usually in the future: a timestamp, or a duration from now such as `7d`. */
export const timeAhead = timeFromNow(1);

/** Parses a time that is usually in the past: a timestamp, or a duration before now such as `30d`. */
export const timeAgo = timeFromNow(-1);

function timeFromNow(direction: 1 | -1): (text: string) => string {
  return (text) => {
    if (parseRequestTimestamp(text) !== null) return text;
    const distance = parseDuration(text);
    if (distance !== null) return formatInstant(systemRuntime.now() + direction * distance);
    throw new InvalidArgumentError(
      'It must be a time such as 2026-11-01 or 2026-11-01T10:00:00Z, in UTC without an offset, or a duration such as 7d or 1h30m.',
    );
  };
}

/** Parses hours: their number, or a duration of whole hours such as `7d`. */
export function hours(highest?: number): (text: string) => number {
  return (text) => {
    const length = (parseDuration(text) ?? 0) / HOUR_MS;
    if (length >= 1 && Number.isInteger(length)) return wholeNumber(highest)(String(length));
    if (/^[0-9]+$/.test(text)) return wholeNumber(highest)(text);
    throw new InvalidArgumentError(
      'It must be a number of hours, or a duration such as 24h or 7d.',
    );
  };
}

/** Milliseconds. */
export function duration(text: string): number {
  const parsed = parseDuration(text);
  if (parsed !== null) return parsed;
  throw new InvalidArgumentError('It must be a duration such as 14d or 12h.');
}

export function serverUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new InvalidArgumentError('It must be an http or https URL.');
}

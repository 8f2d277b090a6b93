/** Reads signed records from an untrusted address, within limits on time, bytes and JSON values. */

import { parseJson } from '../base/json/parse.ts';
import type { JsonValue } from '../base/json/value.ts';
import { textOf } from '../client/body.ts';
import { EXIT, failure } from './exit-codes.ts';
import { httpFetch } from './http-fetch.ts';

export interface ReadingBounds {
  /** Time limit for the whole answer, in milliseconds. */
  readonly longestMs: number;
  readonly mostBytes: number;
  /** Limits the number of JSON values, because a value takes far more memory than its text. */
  readonly mostValues: number;
}

/** A list of a million revocations has about 180 MB and five million values. */
const BOUNDS: ReadingBounds = {
  longestMs: 300_000,
  mostBytes: 512 * 1024 * 1024,
  mostValues: 8_000_000,
};

/**
 * Reads JSON from the address; `caFile` is as for `httpFetch`. Rejects with a one-sentence message unless the answer is
 * JSON within the limits.
 */
export async function readJsonUrl(
  address: string,
  caFile: string | undefined,
  { longestMs, mostBytes, mostValues } = BOUNDS,
): Promise<JsonValue> {
  const late = AbortSignal.timeout(longestMs);
  const left = new AbortController();
  const signal = AbortSignal.any([late, left.signal]);
  try {
    const answer = await httpFetch(caFile)(address, {
      method: 'GET',
      headers: {},
      redirect: 'error',
      signal,
    });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    return parseJson(await textOf(answer, signal, mostBytes), mostValues);
  } catch (error) {
    throw failure(
      EXIT.unreachable,
      'unreadable_answer',
      `${address} cannot be read: ${reasonOf(error, late, longestMs)}`,
    );
  } finally {
    left.abort();
  }
}

function reasonOf(error: unknown, late: AbortSignal, longestMs: number): string {
  if (late.aborted) return `it took longer than ${longestMs / 1000} s`;
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

/** Signed records at an address of anybody's, who is not trusted: what is read has an end in time, bytes and values. */

import { parseJson } from '../base/json/parse.ts';
import type { JsonValue } from '../base/json/value.ts';
import { textOf } from '../client/body.ts';
import { EXIT, failure } from './exit-codes.ts';
import { httpFetch } from './http-fetch.ts';

export interface ReadingBounds {
  /** Milliseconds until the whole answer is there. */
  readonly longestMs: number;
  readonly mostBytes: number;
  /** JSON values: a few bytes of text may be a value, which takes far more memory than they do. */
  readonly mostValues: number;
}

/** A list of a million revocations has some 180 MB, and five million values. */
const BOUNDS: ReadingBounds = {
  longestMs: 300_000,
  mostBytes: 512 * 1024 * 1024,
  mostValues: 8_000_000,
};

/**
 * `caFile` as `httpFetch` takes it. Rejects with one sentence when nobody answers there with JSON within the bounds.
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
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
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
  if (late.aborted) return `it takes longer than ${longestMs / 1000} s`;
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

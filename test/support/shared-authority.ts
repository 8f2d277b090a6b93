/** One authority for many tests of a file, each of which needs it only briefly. */
import { after } from 'node:test';
import { RATE_BUCKETS } from '../../src/protocol/route-description.ts';
import { startTestAuthority, type TestAuthority, type TestOptions } from './authority.ts';

const UNLIMITED = Object.fromEntries(
  RATE_BUCKETS.map((bucket) => [`MESH_RATE_LIMIT_${bucket}`, 'off']),
);

/** The authority starts when the first test needs it, and has no rate limits unless the options set them. */
export function sharedAuthority({ environment, ...options }: TestOptions = {}) {
  let started: Promise<TestAuthority> | null = null;
  after(async () => (await started)?.[Symbol.asyncDispose]());
  return () => {
    started ??= startTestAuthority({ ...options, environment: { ...UNLIMITED, ...environment } });
    return started;
  };
}

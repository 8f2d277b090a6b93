/** One authority for many tests of a file, each of which would need no more of its own than a moment of it. */
import { after } from 'node:test';
import { RATE_BUCKETS } from '../../src/protocol/route-description.ts';
import { startTestAuthority, type TestAuthority, type TestOptions } from './authority.ts';

const UNLIMITED = Object.fromEntries(
  RATE_BUCKETS.map((bucket) => [`MESH_RATE_LIMIT_${bucket}`, 'off']),
);

/** It starts with the first test that asks for it, and counts nobody's requests unless the options say so. */
export function sharedAuthority({ environment, ...options }: TestOptions = {}) {
  let started: Promise<TestAuthority> | null = null;
  after(async () => (await started)?.[Symbol.asyncDispose]());
  return () => {
    started ??= startTestAuthority({ ...options, environment: { ...UNLIMITED, ...environment } });
    return started;
  };
}

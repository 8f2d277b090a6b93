import type { RateLimitSettings } from '../../src/edge/limits/rate-limit.ts';
import { RATE_BUCKETS } from '../../src/protocol/route-description.ts';

export const UNLIMITED = Object.fromEntries(
  RATE_BUCKETS.map((bucket) => [bucket, null]),
) as RateLimitSettings;

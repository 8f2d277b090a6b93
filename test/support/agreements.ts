/** Shared setup for tests of agreements. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { TestAuthority } from './authority.ts';
import { HOUR, SECOND } from './clock.ts';
import { get } from './requests.ts';
import { sovereign, UUID, verifies } from './trust.ts';
import { ourselves, type Party, recognized } from './trust-protocol.ts';

export const OFFER = '/admin/agreements/offer';
export const COUNTER = '/admin/agreements/counter';
export const ACCEPT = '/admin/agreements/accept';
export const VERIFY = '/agreements/verify';

/** Two sovereigns that recognize each other, as seen by one authority. */
export async function parties(
  na: TestAuthority,
  beta: Party = sovereign('beta'),
): Promise<{ alpha: Party; beta: Party; now: number }> {
  await recognized(na, beta);
  return { alpha: ourselves(na), beta, now: na.clock.now() };
}

export function termsRequest(now: number, changes: JsonObject = {}): JsonObject {
  return {
    capabilities: ['read', 'write'],
    scope: { region: 'eu-west' },
    valid_from: formatInstant(now),
    valid_until: formatInstant(now + HOUR),
    ...changes,
  };
}

export function offerRequest(now: number, changes: JsonObject = {}): JsonObject {
  const expires_at = formatInstant(now + 60 * SECOND);
  return { responder_sovereign_id: 'beta', ...termsRequest(now), expires_at, ...changes };
}

async function graphDigest(na: TestAuthority): Promise<string> {
  const { text } = await get(na, '/recognition-graph');
  return createHash('sha256').update(text).digest('hex');
}

/** What evidence says of a path; `severity` is that of its only signal. */
const FOUND = {
  allow: { reason: 'active_treaty_path', trusted: true, hop_count: 1, severity: 'info' },
  block: { reason: 'no_active_treaty_path', trusted: false, hop_count: 0, severity: 'block' },
};

/** Checks evidence of the authority member by member. */
export async function assertOwnEvidence(
  na: TestAuthority,
  record: JsonObject,
  verdict: keyof typeof FOUND,
  source_sovereign_id = 'alpha',
  target_sovereign_id = 'beta',
): Promise<void> {
  const { severity, ...found } = FOUND[verdict];
  const { evidence_id, signals, signatures, ...rest } = record;
  assert.match(String(evidence_id), UUID);
  const now = formatInstant(na.clock.now());
  assert.deepEqual(rest, {
    issuer_sovereign_id: 'alpha',
    requested_roles: [],
    evaluated_at: now,
    issued_at: now,
    issued_by: na.audience,
    metadata: {},
    source_sovereign_id,
    target_sovereign_id,
    verdict,
    ...found,
    graph_digest: await graphDigest(na),
  });
  const [only, ...more] = signals as JsonObject[];
  assert.deepEqual([only?.code, only?.severity, more], [found.reason, severity, []]);
  assert.equal(typeof only?.detail, 'string');
  assert.deepEqual(
    (signatures as JsonObject[]).map(({ key_id }) => key_id),
    [na.audience],
  );
  assert.ok(verifies(record, na.audience));
}

export const LONG_LIST = Array.from({ length: 4097 }, (_, index) => `c${index}`);

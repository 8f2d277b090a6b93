/** The lifecycle of a treaty at a given time [core-6-1]. Instants are in milliseconds. */

import { lastInstantInForce } from '../../../machines/recognition-treaty.ts';
import { formatInstant, formatInstantIfAny } from '../../base/timestamp.ts';
import { successorIn } from '../../protocol/records/recognition.ts';
import type { ExpiryRisk, Lifecycle, LifecycleState } from '../../protocol/rows/recognition.ts';

export interface TreatyFacts {
  readonly expiresAt: number;
  readonly revokedAt: number | null;
  readonly revocationReason: string | null;
}

const HIGH_RISK_SECONDS = 24 * 3600;
const MEDIUM_RISK_SECONDS = 72 * 3600;

export function lifecycleOf(treaty: TreatyFacts, now: number): Lifecycle {
  const replacement = replacementOf(treaty);
  const revoked = treaty.revokedAt !== null;
  const seconds = secondsUntilExpiry(treaty, now);
  const [state, risk] = revoked ? revokedState(replacement) : runningState(seconds);
  return {
    state,
    expiry_risk: risk,
    seconds_until_expiry: revoked ? null : Math.max(0, seconds),
    expires_at: formatInstant(treaty.expiresAt),
    revoked_at: formatInstantIfAny(treaty.revokedAt),
    revocation_reason: treaty.revocationReason,
    replacement_treaty_id: replacement,
  };
}

/** Whether the treaty is in force, which includes treaties that expire soon. */
export function isLifecycleActive(treaty: TreatyFacts, now: number): boolean {
  return treaty.revokedAt === null && now <= lastInstantInForce(treaty);
}

/** When the lifecycle next changes merely because time passes; infinity if never. */
export function nextLifecycleChange(treaty: TreatyFacts, now: number): number {
  if (treaty.revokedAt !== null) return Number.POSITIVE_INFINITY;
  const changes = [MEDIUM_RISK_SECONDS, HIGH_RISK_SECONDS, 0].map((bound) =>
    whenLeft(bound, treaty.expiresAt),
  );
  return changes.find((change) => change > now) ?? Number.POSITIVE_INFINITY;
}

/** Since when a treaty that ends then expires soon. */
export function expiresSoonFrom(expiresAt: number): number {
  return whenLeft(MEDIUM_RISK_SECONDS, expiresAt);
}

/** Seconds are truncated, so the bound is reached 1 ms after exactly one second more than the bound is left. */
function whenLeft(seconds: number, expiresAt: number): number {
  return expiresAt - (seconds + 1) * 1000 + 1;
}

/** Full seconds, with the fraction truncated. */
function secondsUntilExpiry({ expiresAt }: TreatyFacts, now: number): number {
  return Math.trunc((expiresAt - now) / 1000);
}

function replacementOf({ revokedAt, revocationReason }: TreatyFacts): string | null {
  return revokedAt === null ? null : successorIn(revocationReason);
}

function revokedState(replacement: string | null): [LifecycleState, ExpiryRisk] {
  return [replacement === null ? 'revoked' : 'replaced', 'none'];
}

function runningState(seconds: number): [LifecycleState, ExpiryRisk] {
  if (seconds <= 0) return ['expired', 'expired'];
  if (seconds <= HIGH_RISK_SECONDS) return ['expiring_soon', 'high'];
  if (seconds <= MEDIUM_RISK_SECONDS) return ['expiring_soon', 'medium'];
  return ['active', 'low'];
}

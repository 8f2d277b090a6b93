/** Evaluates one sovereign's trust in another according to the recognition graph [trust-4-1]. */

import { formatInstant } from '../../base/timestamp.ts';
import type { TrustDecision, TrustSignal, Verdict } from '../../protocol/records/trust-evidence.ts';
import type { EdgeRow } from '../../protocol/rows/graph.ts';
import type { RecognitionIndex } from './recognition-index.ts';
import { findTrustPath } from './trust-path.ts';

/** Severities, most serious first. */
const SEVERITIES = ['block', 'escalate', 'warn'] as const satisfies readonly Verdict[];
/** Limits the size of evidence, because a feed may revoke any number of attestations. */
const MAX_REVOCATION_SIGNALS = 256;

export function evaluateTrust(
  index: RecognitionIndex,
  source: string,
  target: string,
  now: number,
): TrustDecision {
  const { trusted, reason, path, hop_count } = findTrustPath(index, source, target, now);
  const findings = trusted ? [...pressure(index, source, path), ...expiring(path)] : [];
  const signals = findings.length > 0 ? findings : [ownSignal(trusted, reason)];
  const gravest = SEVERITIES.find((severity) => findings.some((f) => f.severity === severity));
  return {
    source_sovereign_id: source,
    target_sovereign_id: target,
    verdict: gravest ?? (trusted ? 'allow' : 'block'),
    reason: findings.find(({ severity }) => severity === gravest)?.code ?? reason,
    requested_roles: [],
    trusted,
    hop_count,
    signals,
    evaluated_at: formatInstant(now),
  };
}

function ownSignal(trusted: boolean, code: string): TrustSignal {
  if (trusted) return { code, severity: 'info', detail: 'a path of active treaties leads there' };
  return { code, severity: 'block', detail: 'no path of active treaties leads there' };
}

/** One signal for each attestation that a sovereign on the path has revoked. */
function pressure(
  index: RecognitionIndex,
  source: string,
  path: readonly EdgeRow[],
): TrustSignal[] {
  const signals: TrustSignal[] = [];
  for (const issuer of [source, ...path.map(({ to }) => to)]) {
    for (const { id } of index.revokedBy(issuer)) {
      if (signals.length === MAX_REVOCATION_SIGNALS) return signals;
      signals.push({
        code: 'recognition_under_revocation_pressure',
        severity: 'escalate',
        detail: `${issuer} has revoked attestation ${id}`,
      });
    }
  }
  return signals;
}

function expiring(path: readonly EdgeRow[]): TrustSignal[] {
  return path
    .filter(({ lifecycle_state }) => lifecycle_state === 'expiring_soon')
    .map(({ treaty_id, expires_at }) => ({
      code: 'treaty_expiring_soon',
      severity: 'warn',
      detail: `treaty ${treaty_id} expires at ${expires_at}`,
    }));
}

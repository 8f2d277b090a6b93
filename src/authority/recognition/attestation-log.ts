/** Which attestations each issuer has revoked here: as decided, and as they stand on disk. */
import type { Attestation } from '../../../machines/attestation.ts';
import type { SubjectListener } from '../engine/subjects.ts';

export interface AttestationLog {
  readonly followDecided: SubjectListener;
  readonly followCommitted: SubjectListener;
  /** Attestation id to reason, decisions that are not on disk yet included. */
  revokedBy(issuer: string): ReadonlyMap<string, string>;
  committedBy(issuer: string): ReadonlyMap<string, string>;
}

type Revoked = Map<string, Map<string, string>>;

const NONE: ReadonlyMap<string, string> = new Map();

export function createAttestationLog(): AttestationLog {
  const decided: Revoked = new Map();
  const committed: Revoked = new Map();
  return {
    followDecided: follower(decided),
    followCommitted: follower(committed),
    revokedBy: (issuer) => decided.get(issuer) ?? NONE,
    committedBy: (issuer) => committed.get(issuer) ?? NONE,
  };
}

function follower(revoked: Revoked): SubjectListener {
  return (kind, id, { value, context }) => {
    if (kind !== 'attestation' || value !== 'revoked') return;
    const { issuer, revocationReason } = context as Attestation;
    const ofIssuer = revoked.get(issuer) ?? new Map<string, string>();
    revoked.set(issuer, ofIssuer.set(id, revocationReason ?? 'unspecified'));
  };
}

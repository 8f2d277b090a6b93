import { KINDS, type SubjectKind } from '../engine/kinds.ts';
import type { Subjects } from '../engine/subjects.ts';

/** Counts over what is on disk; none of them costs more as the fleet grows. */
export interface Counts {
  /** All that were ever issued, also those that are no longer kept. */
  issuedCertificates(): number;
  keptCertificates(): number;
  revokedCertificates(): number;
  policyVersions(): number;
  /** Subjects that are kept now, and those that were removed so far, by kind. */
  kept(): ByKind;
  removed(): ByKind;
}

export type ByKind = { readonly [Kind in SubjectKind]?: number };

export function createCounts(subjects: Subjects): Counts {
  let revoked = 0;
  // Revoked is a final state, so each certificate comes to it once.
  subjects.onCommitted((kind, _id, { value }) => {
    if (kind === 'certificate' && value === 'revoked') revoked += 1;
  });
  const removedOf = (kind: SubjectKind) =>
    subjects.committed('removal-count', kind)?.context.removed ?? 0;
  const byKind = (count: (kind: SubjectKind) => number): ByKind =>
    Object.fromEntries(KINDS.map((kind) => [kind, count(kind)]));
  return {
    issuedCertificates: () => subjects.countCommitted('certificate') + removedOf('certificate'),
    keptCertificates: () => subjects.countCommitted('certificate'),
    revokedCertificates: () => revoked,
    policyVersions: () => subjects.countCommitted('policy'),
    kept: () => byKind(subjects.countCommitted),
    removed: () => byKind(removedOf),
  };
}

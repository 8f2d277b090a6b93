import { KINDS, type SubjectKind } from '../subjects/kinds.ts';
import type { SubjectFollower, Subjects } from '../subjects/subjects.ts';

/** Counts of committed state, whose cost does not grow with the fleet. */
export interface Counts {
  /** All certificates ever issued, including removed ones. */
  issuedCertificates(): number;
  keptCertificates(): number;
  revokedCertificates(): number;
  policyVersions(): number;
  /** The numbers of subjects currently kept and of subjects removed so far, by kind. */
  kept(): ByKind;
  removed(): ByKind;
  readonly follow: SubjectFollower;
}

export type ByKind = { readonly [Kind in SubjectKind]?: number };

export function createCounts(subjects: Subjects): Counts {
  let revoked = 0;
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
    // `revoked` is a final state, so each certificate enters it only once.
    follow(kind, _id, { value }) {
      if (kind === 'certificate' && value === 'revoked') revoked += 1;
    },
  };
}

import type { Subjects } from '../engine/subjects.ts';

/** Counts over what is on disk; none of them costs more as the fleet grows. */
export interface Counts {
  issuedCertificates(): number;
  revokedCertificates(): number;
  policyVersions(): number;
}

export function createCounts(subjects: Subjects): Counts {
  let revoked = 0;
  // Revoked is a final state, so each certificate comes to it once.
  subjects.onCommitted((kind, _id, { value }) => {
    if (kind === 'certificate' && value === 'revoked') revoked += 1;
  });
  return {
    issuedCertificates: () => subjects.countCommitted('certificate'),
    revokedCertificates: () => revoked,
    policyVersions: () => subjects.countCommitted('policy'),
  };
}

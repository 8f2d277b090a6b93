import type { Runtime } from '../base/runtime.ts';
import { KINDS, type Subject, type SubjectKind } from './subjects/kinds.ts';
import type { Subjects } from './subjects/subjects.ts';

/** Counts of committed state, whose cost does not grow with the fleet. */
export type Counts = ReturnType<typeof createCounts>;

export type ByKind = { readonly [Kind in SubjectKind]?: number };

export function createCounts(subjects: Subjects) {
  let revoked = 0;
  const removedOf = (kind: SubjectKind) =>
    subjects.committed('removal-count', kind)?.context.removed ?? 0;
  const byKind = (count: (kind: SubjectKind) => number): ByKind =>
    Object.fromEntries(KINDS.map((kind) => [kind, count(kind)]));
  return {
    /** All certificates ever issued, including removed ones. */
    issuedCertificates: () => subjects.countCommitted('certificate') + removedOf('certificate'),
    keptCertificates: () => subjects.countCommitted('certificate'),
    revokedCertificates: () => revoked,
    policyVersions: () => subjects.countCommitted('policy'),
    /** The numbers of subjects currently kept and of subjects removed so far, by kind. */
    kept: () => byKind(subjects.countCommitted),
    removed: () => byKind(removedOf),
    // `revoked` is a final state, so each certificate enters it only once.
    certificateCommitted({ value }: Subject<'certificate'>) {
      if (value === 'revoked') revoked += 1;
    },
  };
}

const MINUTE = 60_000;
const MINUTES = 60;

interface Minute {
  number: number;
  operator: number;
  node: number;
}

/**
 * Counts the failed authentications of the last hour in one-minute buckets, so its size does not depend on their
 * number.
 */
export function createFailureWindow(elapsed: Runtime['elapsed']) {
  const minutes: Minute[] = Array.from({ length: MINUTES }, () => noneIn(Number.NEGATIVE_INFINITY));

  function current(): Minute {
    const number = Math.floor(elapsed() / MINUTE);
    const slot = number % MINUTES;
    const held = minutes[slot];
    if (held?.number === number) return held;
    const fresh = noneIn(number);
    minutes[slot] = fresh;
    return fresh;
  }

  return {
    /** Counts a refusal if its audit event is a failed authentication. */
    note(event: string) {
      if (event === 'admin_auth_failed') current().operator += 1;
      if (event === 'node_auth_failed') current().node += 1;
    },
    lastHour(): { readonly operator: number; readonly node: number } {
      const oldest = Math.floor(elapsed() / MINUTE) - MINUTES;
      const within = minutes.filter(({ number }) => number > oldest);
      const sum = (kind: 'operator' | 'node') =>
        within.reduce((total, minute) => total + minute[kind], 0);
      return { operator: sum('operator'), node: sum('node') };
    },
  };
}

function noneIn(number: number): Minute {
  return { number, operator: 0, node: 0 };
}

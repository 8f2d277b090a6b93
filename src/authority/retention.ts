/**
 * Defines how long subjects are kept, and sweeps away the rest. The audit log is never trimmed: its entries still
 * record everything that is removed here.
 */
import type { NodeDescription } from '../../machines/node-description.ts';
import type { Authority } from './authority.ts';
import type { CertificateIndex } from './certificates/certificate-index.ts';
import type { Subject, SubjectKind } from './subjects/kinds.ts';
import type { Subjects } from './subjects/subjects.ts';
import type { UnitOfWork } from './subjects/unit-of-work.ts';

/** How long subjects are kept after they end, in milliseconds. */
export interface RetentionPeriods {
  /** Expired certificates that are the newest one of their key. */
  readonly certificate: number;
  /** Expired certificates whose key has a newer one. */
  readonly renewedCertificate: number;
  /** Consumed and expired invites. */
  readonly invite: number;
  /** Agent registrations that have ended. */
  readonly agent: number;
}

interface Given {
  readonly at: number;
  readonly periods: RetentionPeriods;
  readonly certificates: Pick<CertificateIndex, 'isNewest' | 'ownedBy'>;
}

/** Whether the subject is no longer needed. */
type IsPast<Kind extends SubjectKind> = (
  id: string,
  subject: Subject<Kind>,
  given: Given,
) => boolean;

const KEPT_FOR_GOOD = null;

const RULES: { readonly [Kind in SubjectKind]: IsPast<Kind> | typeof KEPT_FOR_GOOD } = {
  /** Revoked certificates are kept, because the revocation list is built from them and never drops entries. */
  certificate(id, { value, context }, { at, periods, certificates }) {
    const expiredFor = at - context.expiresAt;
    const shortest = Math.min(periods.certificate, periods.renewedCertificate);
    if (value === 'revoked' || expiredFor < shortest) return false;
    const isNewest = certificates.isNewest(id, context.nodePublicKey);
    return expiredFor >= (isNewest ? periods.certificate : periods.renewedCertificate);
  },
  invite: (_, { context }, { at, periods }) =>
    (context.usedAt ?? context.expiresAt) + periods.invite <= at,
  'agent-registration': (_, { value, context }, { at, periods }) =>
    value !== 'registered' && context.expiresAt + periods.agent <= at,
  'node-description': (nodePublicKey, { context }, { certificates }) =>
    isEmpty(context) || certificates.ownedBy(nodePublicKey).length === 0,
  /** Proofs do not expire, and each can only ever be nullified once [trust-4-5]. */
  'capability-nullifier': KEPT_FOR_GOOD,
  'node-key': KEPT_FOR_GOOD,
  'restored-revocation': KEPT_FOR_GOOD,
  /** Signed statements and their revocations: peers may hold them or ask for them at any time. */
  attestation: KEPT_FOR_GOOD,
  'recognition-treaty': KEPT_FOR_GOOD,
  'revocation-import': KEPT_FOR_GOOD,
  /** There is only one of each, or as many as operators create by hand. */
  'operator-key': KEPT_FOR_GOOD,
  'authority-key': KEPT_FOR_GOOD,
  policy: KEPT_FOR_GOOD,
  crl: KEPT_FOR_GOOD,
  'sovereign-feed': KEPT_FOR_GOOD,
  'recognition-policy': KEPT_FOR_GOOD,
  'revocation-feed': KEPT_FOR_GOOD,
  'data-license-policy': KEPT_FOR_GOOD,
  'removal-count': KEPT_FOR_GOOD,
  /** There are only as many as the configuration lists. */
  webhook: KEPT_FOR_GOOD,
};

function isEmpty({ name, labels, hostname }: NodeDescription): boolean {
  return name === null && labels.length === 0 && hostname === null;
}

/** The most subjects that one sweep visits and removes, which takes a few milliseconds of the authority's thread. */
const SWEEP = { looksAt: 1000, removes: 250 } as const;

/**
 * Nothing is removed within this time after a start or a clock change. With a wrong clock, live certificates would
 * look long expired, and a removal cannot be undone.
 */
const CLOCK_TRUSTED_AFTER_MS = 3_600_000;

export type Retention = ReturnType<typeof createRetention>;

export function createRetention(periods: RetentionPeriods, elapsed: () => number) {
  let walk: Iterator<Visited> | null = null;
  let startsAt = elapsed() + CLOCK_TRUSTED_AFTER_MS;

  function removePast(na: Authority, unit: UnitOfWork): ReadonlyMap<SubjectKind, number> {
    const removed = new Map<SubjectKind, number>();
    const { certificates } = na;
    walk ??= walkOver(na.subjects);
    for (
      let left: number = SWEEP.removes, looked = 0;
      left > 0 && looked < SWEEP.looksAt;
      looked += 1
    ) {
      const next = walk.next();
      if (next.done === true) {
        walk = null;
        break;
      }
      const { kind, id, committed } = next.value;
      const isPast = RULES[kind] as IsPast<SubjectKind>;
      if (!isPast(id, committed, { at: unit.at, periods, certificates })) continue;
      // Subjects with a pending change wait for the next walk.
      if (na.subjects.current(kind, id)?.version !== committed.version) continue;
      unit.remove(kind, id);
      removed.set(kind, (removed.get(kind) ?? 0) + 1);
      left -= 1;
    }
    return removed;
  }

  return {
    /** Continues the walk over all subjects for one bounded unit of work. */
    sweep(na: Authority, unit: UnitOfWork): null {
      if (elapsed() < startsAt) return null;
      for (const [kind, count] of removePast(na, unit)) {
        unit.send('removal-count', kind, { type: 'remove', count });
      }
      return null;
    },
    clockSet() {
      startsAt = elapsed() + CLOCK_TRUSTED_AFTER_MS;
    },
  };
}

interface Visited {
  readonly kind: SubjectKind;
  readonly id: string;
  readonly committed: Subject;
}

/** Subjects that are added or removed during the walk are visited at most once. */
function* walkOver(subjects: Subjects): Iterator<Visited> {
  for (const [kind, rule] of Object.entries(RULES) as [SubjectKind, unknown][]) {
    if (rule === KEPT_FOR_GOOD) continue;
    for (const [id, committed] of subjects.allCommitted(kind)) yield { kind, id, committed };
  }
}

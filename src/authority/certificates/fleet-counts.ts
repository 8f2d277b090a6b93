/**
 * Counts the nodes that have problems. Because every certificate is visited, a large fleet is counted in slices with
 * rests in between, and a pause before the next count limits the work to a sixtieth of the time.
 */

import { compareCodePoints } from '../../base/json/write.ts';
import type { Runtime } from '../../base/runtime.ts';
import { inRestingSlices } from '../../base/slices.ts';
import { createPauses, createSharedWork } from '../../base/work.ts';
import { reportsHealth } from '../../protocol/rows/node-health.ts';
import type { NodeCounts, RoleCounts } from '../../protocol/rows/posture.ts';
import type { Subject } from '../subjects/kinds.ts';
import type { Subjects } from '../subjects/subjects.ts';
import type { CertificateIndex } from './certificate-index.ts';
import type { Liveness } from './last-contact.ts';

/** Counts of the nodes that have reported at least once, and of those that have problems. */
export interface FleetFacts extends NodeCounts {
  /** When `silent` is known at the latest. */
  readonly silentKnownFrom: number;
  /** Nodes whose last certificate expired within the last thirty days. */
  readonly lapsed: number;
  /** The roles with the most nodes; a node counts in each of its roles. */
  readonly roles: readonly RoleCounts[];
  /** How many other roles there are. */
  readonly more_roles: number;
}

export type FleetCounts = ReturnType<typeof createFleetCounts>;

export interface FleetCountsOptions extends NodeReportsOptions {
  readonly subjects: Subjects;
  /** How long a node may stay silent, in milliseconds. */
  readonly activeWindow: number;
  readonly elapsed: Runtime['elapsed'];
}

const DAY = 86_400_000;
/** Once a certificate has been expired for this long, its node is considered abandoned. */
const LAPSED_MS = 30 * DAY;
/** A certificate counts as lapsing in the last tenth of its lifetime, but for no longer than this. */
const LONGEST_LAPSING_MS = 3 * DAY;
const SHORTEST_PAUSE_MS = 1000;
/** A count already rests for two thirds of its duration, so this limits the work to a sixtieth of the time. */
const PAUSE_PER_COUNT = 20;
const CERTIFICATES_PER_SLICE = 500;
/** Roles are counted up to this number, and those with the most nodes are shown. */
const MOST_ROLES = 1000;
const SHOWN_ROLES = 12;

export function createFleetCounts(options: FleetCountsOptions) {
  const { subjects, liveness, activeWindow, elapsed } = options;
  const reports = createNodeReports(options);
  /** By the monotonic clock, because the wall clock may be set. */
  const knownAfter = elapsed() + activeWindow;
  let latest: FleetFacts | null = null;
  const pauses = createPauses(elapsed, { perWork: PAUSE_PER_COUNT, shortestMs: SHORTEST_PAUSE_MS });
  const counting = createSharedWork();

  function* count(now: number): Generator<void, FleetFacts> {
    const all = newTally();
    const roles = new Map<string, Tally>();
    let lapsed = 0;
    let seen = 0;
    for (const [id, certificate] of subjects.allCommitted('certificate')) {
      seen += 1;
      if (seen % CERTIFICATES_PER_SLICE === 0) yield;
      const report = reports.of(id, certificate, now - LAPSED_MS);
      if (report === null) continue;
      const { expiresAt, issuedAt } = certificate.context;
      if (expiresAt <= now) {
        lapsed += 1;
        continue;
      }
      const lapsingMs = Math.min((expiresAt - issuedAt) / 10, LONGEST_LAPSING_MS);
      const node = {
        isSilent: now - liveness.lastSeen(id) >= activeWindow,
        isUnwell: !reportsHealth(report),
        isLapsing: expiresAt - now < lapsingMs,
      };
      addNode(all, node);
      for (const role of new Set(certificate.context.roles)) {
        const tally = roles.get(role) ?? (roles.size < MOST_ROLES ? newTally() : null);
        if (tally === null) continue;
        addNode(tally, node);
        roles.set(role, tally);
      }
    }
    // Silent nodes may not have had time to report since the process started.
    const silentKnownFrom = now + Math.ceil(knownAfter - elapsed());
    const isKnown = (silent: number) => silent === 0 || now >= silentKnownFrom;
    const known = ({ healthy, silent, ...counts }: Tally): NodeCounts => ({
      ...counts,
      ...(isKnown(silent) ? { healthy, silent } : { healthy: null, silent: null }),
    });
    const largest = [...roles].sort(([a, { expected: x }], [b, { expected: y }]) =>
      x === y ? compareCodePoints(a, b) : y - x,
    );
    return {
      ...known(all),
      silentKnownFrom,
      lapsed,
      roles: largest.slice(0, SHOWN_ROLES).map(([role, tally]) => ({ role, ...known(tally) })),
      more_roles: Math.max(0, largest.length - SHOWN_ROLES),
    };
  }

  function start(now: number): Promise<void> | undefined {
    const started = elapsed();
    const done = (counts: FleetFacts) => {
      latest = counts;
      pauses.after(started);
    };
    const counted = inRestingSlices(count(now), elapsed);
    if (counted instanceof Promise) return counted.then(done);
    done(counted);
    return undefined;
  }

  return {
    /**
     * Counts again if the last count is too old. Returns a promise only until the first count is available. Later
     * counts of a large fleet run in the background, and readers get the last one.
     */
    take(now: number): Promise<void> | undefined {
      const isDue = latest === null || pauses.left() <= 0;
      const underWay = counting.share(() => (isDue ? start(now) : undefined));
      if (latest === null) return underWay;
      // After a failure, the next caller waits for a count of its own, and gets the error if that fails too.
      underWay?.catch(() => {
        latest = null;
      });
      return undefined;
    },
    /** The last count; null before the first one. */
    get latest() {
      return latest;
    },
  };
}

type Tally = Record<'expected' | 'healthy' | 'unwell' | 'silent' | 'lapsing', number>;

function newTally(): Tally {
  return { expected: 0, healthy: 0, unwell: 0, silent: 0, lapsing: 0 };
}

interface CountedNode {
  readonly isSilent: boolean;
  readonly isUnwell: boolean;
  readonly isLapsing: boolean;
}

function addNode(tally: Tally, { isSilent, isUnwell, isLapsing }: CountedNode): void {
  tally.expected += 1;
  if (isSilent) tally.silent += 1;
  if (isUnwell) tally.unwell += 1;
  if (!isSilent && !isUnwell) tally.healthy += 1;
  if (isLapsing) tally.lapsing += 1;
}

export interface NodeReportsOptions {
  readonly certificates: CertificateIndex;
  readonly liveness: Liveness;
}

/** Placeholder statuses that are kept until a node sends its first report. */
const NOT_REPORTED = new Set(['joined', 'renewed']);

/** Which certificates stand for a node that reports: each such node counts once, however many certificates it has. */
export function createNodeReports({ certificates, liveness }: NodeReportsOptions) {
  function reportOf(id: string, renewedFrom: string | null): string | null {
    const own = liveness.statusOf(id);
    if (!NOT_REPORTED.has(own)) return own;
    const before = renewedFrom === null ? own : liveness.statusOf(renewedFrom);
    return NOT_REPORTED.has(before) || before === '' ? null : before;
  }

  return {
    /**
     * The node's last report, under this certificate or the previous one. Null if the node never reported, if it has a
     * newer certificate, or if this one was revoked or expired before `since`.
     */
    of(id: string, { value, context }: Subject<'certificate'>, since: number): string | null {
      const { nodePublicKey, expiresAt, renewedAt, renewedFrom } = context;
      if (value === 'revoked' || renewedAt !== null || expiresAt <= since) return null;
      const report = reportOf(id, renewedFrom);
      return report !== null && certificates.isNewest(id, nodePublicKey) ? report : null;
    },
  };
}

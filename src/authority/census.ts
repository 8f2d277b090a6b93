/**
 * Counts the nodes: which have problems, which have followed a change of the authority key, and what expires when. All
 * certificates, treaties and attestations are visited, so one walk feeds all tallies: it runs in slices, and the pause
 * before the next walk limits the work to a twentieth of the time, or to a sixtieth where the slices rest.
 */
import { DAY_MS } from '../base/duration.ts';
import { compareCodePoints } from '../base/json/write.ts';
import type { Runtime } from '../base/runtime.ts';
import { createPauses, createSharedWork, inRestingSlices } from '../base/work.ts';
import { instantOf } from '../protocol/records/record.ts';
import { NOT_REPORTED, reportsHealth } from '../protocol/rows/certificate.ts';
import type { NodeCounts, RoleCounts } from '../protocol/rows/dashboard.ts';
import { committedChain } from './authority-keys.ts';
import type { CertificateIndex } from './certificates/certificate-index.ts';
import type { KnownChains } from './certificates/known-chains.ts';
import type { Liveness } from './certificates/last-contact.ts';
import { EndTally } from './end-tally.ts';
import type { Subject } from './subjects/kinds.ts';
import type { Subjects } from './subjects/subjects.ts';
import {
  type Adoption,
  createAdoptionTally,
  type FollowedStatement,
  followedStatement,
  isSameStatement,
} from './succession/adoption.ts';

/** Counts of the nodes that have reported at least once, and of those that have problems. */
export interface FleetFacts extends NodeCounts {
  /** When `silent` is known at the latest. */
  readonly silentKnownFrom: number;
  /** Nodes whose last certificate expired within the last thirty days. */
  readonly lapsed: number;
  /** Since when the first of those that are so has been so; null if none is. */
  readonly since: Readonly<Record<Trouble, number | null>>;
  /** The roles with the most nodes; a node counts in each of its roles. */
  readonly roles: readonly RoleCounts[];
  /** How many other roles there are. */
  readonly more_roles: number;
}

type Trouble = 'silent' | 'lapsing' | 'lapsed';

export interface Counted {
  /** Milliseconds since the epoch. */
  readonly asOf: number;
  readonly fleet: FleetFacts;
  /** Null if there is nothing to follow. */
  readonly adoption: Adoption | null;
  readonly ends: {
    readonly certificate: EndTally;
    readonly treaty: EndTally;
    readonly attestation: EndTally;
  };
}

/** A node that reports, under the certificate that stands for it. Instants are in milliseconds since the epoch. */
export interface CountedNode {
  readonly certId: string;
  readonly roles: readonly string[];
  readonly issuedAt: number;
  /** When it becomes silent, unless it reports before; when its certificate counts as lapsing. */
  readonly silentFrom: number;
  readonly lapsingFrom: number;
  readonly isSilent: boolean;
  readonly isUnwell: boolean;
  readonly isLapsing: boolean;
}

interface CensusOptions {
  readonly subjects: Subjects;
  readonly certificates: CertificateIndex;
  readonly liveness: Liveness;
  readonly knownChains: KnownChains;
  /** How long a node may stay silent, in milliseconds. */
  readonly activeWindow: number;
  readonly now: Runtime['now'];
  readonly elapsed: Runtime['elapsed'];
}

/** Once a certificate has been expired for this long, its node is considered abandoned. */
const LAPSED_MS = 30 * DAY_MS;
/** A certificate counts as lapsing in the last tenth of its lifetime, but for no longer than this. */
const LONGEST_LAPSING_MS = 3 * DAY_MS;
const PAUSE_PER_COUNT = 20;
const VISITED_PER_SLICE = 500;
/** Roles are counted up to this number, and those with the most nodes are shown. */
const MOST_ROLES = 1000;
const SHOWN_ROLES = 12;

export function createCensus(options: CensusOptions) {
  const { subjects, certificates, liveness, knownChains, activeWindow, now, elapsed } = options;
  /** By the monotonic clock, because the wall clock may be set. */
  const knownAfter = elapsed() + activeWindow;
  const pauses = createPauses(elapsed, { perWork: PAUSE_PER_COUNT });
  const counting = createSharedWork();
  let last: Counted | null = null;

  function followed(): FollowedStatement | null {
    return followedStatement(committedChain(options));
  }

  /** Whether nodes were counted that have followed the statement that they have to follow now. */
  function isCurrent(): boolean {
    return last !== null && isSameStatement(last.adoption?.statement ?? null, followed());
  }

  /** Null if the certificate does not stand for a node that has reported: each node counts once. */
  function nodeOf(id: string, { context }: Subject<'certificate'>, asOf: number) {
    const { nodePublicKey, roles, issuedAt, expiresAt, renewedFrom } = context;
    const report = reportOf(liveness, id, renewedFrom);
    if (report === null || !certificates.isNewest(id, nodePublicKey)) return null;
    const silentFrom = liveness.lastSeen(id) + activeWindow;
    const lapsingFrom = expiresAt - Math.min((expiresAt - issuedAt) / 10, LONGEST_LAPSING_MS);
    return {
      certId: id,
      roles,
      issuedAt,
      silentFrom,
      lapsingFrom,
      isSilent: silentFrom <= asOf,
      isUnwell: !reportsHealth(report),
      isLapsing: lapsingFrom < asOf,
    };
  }

  function* count(): Generator<void, Counted> {
    const asOf = now();
    // Silent nodes may not have had time to report since the process started.
    const knownFrom = asOf + Math.ceil(knownAfter - elapsed());
    const fleet = createFleetTally(asOf, knownFrom);
    const statement = followed();
    const adoption = statement && createAdoptionTally(statement, asOf, knownFrom);
    const [certificate, treaty, attestation] = [0, 0, 0].map(() => new EndTally(asOf));
    const ends = { certificate, treaty, attestation } as Counted['ends'];
    const began = elapsed();
    let visited = 0;
    const isSliceOver = () => {
      visited += 1;
      return visited % VISITED_PER_SLICE === 0;
    };
    for (const [id, certificate] of subjects.allCommitted('certificate')) {
      if (isSliceOver()) yield;
      const { renewedAt, supersededFrom, expiresAt } = certificate.context;
      if (certificate.value === 'revoked' || renewedAt !== null) continue;
      if (supersededFrom === null) ends.certificate.addIfAhead(expiresAt);
      const node = expiresAt <= asOf - LAPSED_MS ? null : nodeOf(id, certificate, asOf);
      if (node === null) continue;
      if (expiresAt <= asOf) {
        fleet.addLapsed(expiresAt);
        continue;
      }
      fleet.add(node);
      adoption?.add(node, knownChains.lengthOf(liveness.chainOf(id)));
    }
    for (const [, { context }] of subjects.allCommitted('recognition-treaty')) {
      if (isSliceOver()) yield;
      if (context.revokedAt === null) ends.treaty.addIfAhead(context.expiresAt);
    }
    for (const [, { context }] of subjects.allCommitted('attestation')) {
      if (isSliceOver()) yield;
      if (context.revokedAt === null) ends.attestation.addIfAhead(endOf(context.json));
    }
    last = { asOf, fleet: fleet.facts(), adoption: adoption?.counted() ?? null, ends };
    // What takes one slice is always counted anew, so that a number is right when an operator names it.
    if (visited > VISITED_PER_SLICE) pauses.after(began);
    return last;
  }

  function* current(): Generator<void, Counted> {
    return last !== null && pauses.left() > 0 && isCurrent() ? last : yield* count();
  }

  return {
    /** Counts again if the last count is too old, or of another statement, yielding after each slice. */
    current,
    /**
     * The same, but returns a promise only until the first count is available. Later counts of a large fleet run in the
     * background, with rests in between, and readers get the last one.
     */
    take(): Promise<void> | undefined {
      const underWay = counting.share(() => {
        const counted = inRestingSlices(current(), elapsed);
        return counted instanceof Promise ? counted.then(() => undefined) : undefined;
      });
      // After a failure, the next caller waits for a count of its own, and gets the error if that fails too.
      underWay?.catch(() => {
        last = null;
      });
      return last === null ? underWay : undefined;
    },
    /** The last count; null before the first one. */
    latest: () => last,
    isCurrent,
    /** Null before the first count of the statement that nodes have to follow now. */
    adoption: (): Adoption | null => (isCurrent() ? (last?.adoption ?? null) : null),
    /** Null if there is nothing to follow. */
    followed,
  };
}

/** The node's last report, under this certificate or the previous one; null if the node never reported. */
function reportOf(
  { statusOf }: Pick<Liveness, 'statusOf'>,
  id: string,
  renewedFrom: string | null,
): string | null {
  const own = statusOf(id);
  if (!NOT_REPORTED.has(own)) return own;
  const before = renewedFrom === null ? own : statusOf(renewedFrom);
  return NOT_REPORTED.has(before) || before === '' ? null : before;
}

type Tally = Record<'expected' | 'healthy' | 'unwell' | 'silent' | 'lapsing', number>;

function createFleetTally(asOf: number, silentKnownFrom: number) {
  const all = newTally();
  const roles = new Map<string, Tally>();
  let lapsed = 0;
  const since: Record<Trouble, number | null> = { silent: null, lapsing: null, lapsed: null };

  function note(trouble: Trouble, from: number): void {
    since[trouble] = Math.min(since[trouble] ?? from, from);
  }

  function known({ healthy, silent, ...counts }: Tally): NodeCounts {
    const isKnown = silent === 0 || asOf >= silentKnownFrom;
    return { ...counts, ...(isKnown ? { healthy, silent } : { healthy: null, silent: null }) };
  }

  return {
    add(node: CountedNode) {
      addNode(all, node);
      if (node.isSilent) note('silent', node.silentFrom);
      if (node.isLapsing) note('lapsing', node.lapsingFrom);
      for (const role of new Set(node.roles)) {
        const tally = roles.get(role) ?? (roles.size < MOST_ROLES ? newTally() : null);
        if (tally === null) continue;
        addNode(tally, node);
        roles.set(role, tally);
      }
    },
    addLapsed(expiredAt: number) {
      lapsed += 1;
      note('lapsed', expiredAt);
    },
    facts(): FleetFacts {
      const largest = [...roles].sort(
        ([a, { expected: x }], [b, { expected: y }]) => y - x || compareCodePoints(a, b),
      );
      return {
        ...known(all),
        silentKnownFrom,
        lapsed,
        since,
        roles: largest.slice(0, SHOWN_ROLES).map(([role, tally]) => ({ role, ...known(tally) })),
        more_roles: Math.max(0, largest.length - SHOWN_ROLES),
      };
    },
  };
}

function newTally(): Tally {
  return { expected: 0, healthy: 0, unwell: 0, silent: 0, lapsing: 0 };
}

function addNode(tally: Tally, { isSilent, isUnwell, isLapsing }: CountedNode): void {
  tally.expected += 1;
  if (isSilent) tally.silent += 1;
  if (isUnwell) tally.unwell += 1;
  if (!isSilent && !isUnwell) tally.healthy += 1;
  if (isLapsing) tally.lapsing += 1;
}

const END_MEMBER = '"expires_at":"';

/**
 * The end of an attestation. Searching its canonical text takes a hundredth of the time of parsing it. This is
 * safe because no member after `expires_at` has free content, and quotes inside a string would be escaped.
 */
function endOf(json: string): number {
  const at = json.lastIndexOf(END_MEMBER) + END_MEMBER.length;
  return instantOf(json.slice(at, json.indexOf('"', at)));
}

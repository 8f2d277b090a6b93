/** Which nodes and treaties have followed a change of the authority key [authority-keys-11]. */
import { compareCodePoints, type Writable } from '../../base/json/write.ts';
import { formatInstant, formatInstantIfAny } from '../../base/timestamp.ts';
import type { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type {
  AdoptionState,
  AdoptionTally,
  FollowedSuccession,
  LaggardRow,
  PartnerAdoption,
  RoleAdoption,
} from '../../protocol/rows/adoption.ts';
import type { Authority } from '../authority.ts';
import type { KeyChain } from '../authority-keys.ts';
import type { Handler } from '../engine/admission.ts';
import { descriptionRow } from '../node-descriptions.ts';
import { type TreatyBehind, treatiesBehind } from '../recognition/treaty-following.ts';
import { Sliced } from '../subjects/sliced.ts';

export const readAdoption: Handler<'readAdoption'> = (na) => new Sliced(adoption(na));

/** The roles with the most laggards; operators may name any number of roles. */
const MOST_ROLES = 100;
const MOST_PARTNERS = 100;

function* adoption(na: Authority): Generator<void, Writable> {
  const { adoption: counted } = yield* na.census.current();
  const behind = yield* treatiesBehind(na.recognition.edges(), na.runtime.now());
  const partners = behind.slice(0, MOST_PARTNERS).map(partnerRow);
  if (counted === null) {
    const as_of = formatInstant(na.runtime.now());
    return {
      as_of,
      succession: null,
      known_from: null,
      nodes: null,
      roles: [],
      laggards: [],
      partners,
    };
  }
  return {
    as_of: formatInstant(counted.asOf),
    succession: successionOf(counted),
    known_from: formatInstantIfAny(counted.knownFrom),
    nodes: tallyOf(counted.nodes),
    roles: rolesOf(counted),
    laggards: counted.slowest.flatMap((laggard) => laggardRow(na, counted, laggard)),
    partners,
  };
}

function successionOf({ statement }: Adoption): FollowedSuccession {
  const { sequence, kind, to_key, activates_at, overlap_until } = statement.statement;
  return { sequence, kind, state: statement.state, to_key, activates_at, overlap_until };
}

function tallyOf(tally: NodeTally): AdoptionTally {
  const { notHeard, ...counts } = tally;
  return { ...counts, laggards: laggardsIn(tally), not_heard: notHeard };
}

function rolesOf({ byRole }: Adoption): RoleAdoption[] {
  return [...byRole]
    .map(([role, tally]) => ({ role, ...tallyOf(tally) }))
    .sort((a, b) => b.laggards - a.laggards || compareCodePoints(a.role, b.role))
    .slice(0, MOST_ROLES);
}

/** Nothing if the certificate was removed since it was counted. */
function laggardRow(na: Authority, { statement }: Adoption, { certId }: Laggard): LaggardRow[] {
  const certificate = na.subjects.committed('certificate', certId)?.context;
  if (certificate === undefined) return [];
  const { nodePublicKey, roles, issuedAt, expiresAt } = certificate;
  const standing = standingOf(statement, {
    issuedAt,
    length: na.knownChains.lengthOf(na.liveness.chainOf(certId)),
  });
  return [
    {
      cert_id: certId,
      node_public_key: nodePublicKey,
      ...descriptionRow(na.certificates.descriptionOf(certId)),
      roles: [...roles],
      issued_at: formatInstant(issuedAt),
      expires_at: formatInstant(expiresAt),
      last_contact: formatInstant(na.liveness.lastSeen(certId)),
      certified: standing.isCertified,
      informed: standing.isInformed,
    },
  ];
}

function partnerRow({ treatyId, treaty, known, acceptsStolenKey }: TreatyBehind): PartnerAdoption {
  return {
    treaty_id: treatyId,
    issuer_sovereign_id: treaty.issuer,
    subject_sovereign_id: treaty.subject,
    known_sequence: known.length,
    followed_sequence: treaty.followed.length,
    accepts_stolen_key: acceptsStolenKey,
  };
}

/** The statement that nodes have to follow, by knowing it and by holding a certificate of the key that it leads to. */
export interface FollowedStatement {
  readonly statement: AuthoritySuccession;
  readonly state: AdoptionState;
  /** Since when certificates are signed by the key that it leads to, in milliseconds since the epoch; null if staged. */
  readonly certifiedFrom: number | null;
}

interface NodeTally {
  /** Nodes that reported within the active-node window. */
  active: number;
  /** Active nodes with a certificate of the key. */
  certified: number;
  /** Active nodes that know the statement. */
  informed: number;
  /** Active nodes that do not lag behind. */
  followed: number;
  /** Active nodes that have not sent a heartbeat to this process, so what they know is not known. */
  notHeard: number;
  /** Nodes that did not report within the window. */
  silent: number;
}

interface Laggard {
  readonly certId: string;
  readonly issuedAt: number;
}

export interface Adoption {
  readonly statement: FollowedStatement;
  /** Milliseconds since the epoch. */
  readonly asOf: number;
  /** Until then, nodes that could not yet report to this process count as laggards; null if there are none. */
  readonly knownFrom: number | null;
  readonly nodes: NodeTally;
  readonly byRole: ReadonlyMap<string, NodeTally>;
  /** The laggards with the oldest certificates. */
  readonly slowest: readonly Laggard[];
}

const MOST_LAGGARDS = 50;

/** A node that has not expired; `isSilent` may be due to a start within the active-node window. */
interface CountedNode extends Laggard {
  readonly roles: readonly string[];
  readonly isSilent: boolean;
}

/** `knownFrom` is when all nodes have had the time to report to this process. */
export function createAdoptionTally(statement: FollowedStatement, asOf: number, knownFrom: number) {
  const isKnown = asOf >= knownFrom;
  const nodes = newTally();
  const byRole = new Map<string, NodeTally>();
  const slowest: Laggard[] = [];
  return {
    /** `length` is how many statements the node knows; null if it has not sent a heartbeat to this process. */
    add({ certId, issuedAt, roles, isSilent }: CountedNode, length: number | null) {
      const standing = isKnown && isSilent ? null : standingOf(statement, { issuedAt, length });
      add(nodes, standing);
      for (const role of new Set(roles)) add(ofRole(byRole, role), standing);
      if (standing?.hasFollowed === false) keepSlowest(slowest, { certId, issuedAt });
    },
    counted(): Adoption {
      const isOpen = !isKnown && nodes.notHeard > 0;
      return { statement, asOf, knownFrom: isOpen ? knownFrom : null, nodes, byRole, slowest };
    },
  };
}

export function laggardsIn({ active, followed }: NodeTally): number {
  return active - followed;
}

/** While two keys sign, nodes follow to the current one, even if the next one is staged already. */
export function followedStatement({
  staged,
  previous,
  inForce,
  current,
}: KeyChain): FollowedStatement | null {
  const last = inForce.at(-1);
  if (last !== undefined && (previous !== null || staged === null)) {
    return {
      statement: last,
      state: previous === null ? 'finished' : 'overlap',
      // The first key signed all certificates before.
      certifiedFrom: current?.since ?? 0,
    };
  }
  if (staged === null) return null;
  return { statement: staged.statement, state: 'staged', certifiedFrom: null };
}

const WEEK = 604_800_000;

/**
 * Whether people should watch the nodes follow. After a stolen key was replaced, there is no overlap, and most
 * certificates live for a week.
 */
export function isUnderWay(followed: FollowedStatement | null, now: number): boolean {
  if (followed === null) return false;
  const { state, statement } = followed;
  if (state !== 'finished') return true;
  return statement.kind === 'compromise' && now < instantOf(statement.activates_at) + WEEK;
}

export function isSameStatement(a: FollowedStatement | null, b: FollowedStatement | null): boolean {
  return a?.statement.succession_id === b?.statement.succession_id && a?.state === b?.state;
}

function newTally(): NodeTally {
  return { active: 0, certified: 0, informed: 0, followed: 0, notHeard: 0, silent: 0 };
}

function ofRole(byRole: Map<string, NodeTally>, role: string): NodeTally {
  const tally = byRole.get(role) ?? newTally();
  byRole.set(role, tally);
  return tally;
}

interface NodeFacts {
  readonly issuedAt: number;
  /** How many statements the node knows; null if it has not sent a heartbeat to this process. */
  readonly length: number | null;
}

interface Standing {
  readonly isCertified: boolean;
  /** Null if not known. */
  readonly isInformed: boolean | null;
  readonly hasFollowed: boolean;
}

export function standingOf(
  { statement, certifiedFrom }: FollowedStatement,
  { issuedAt, length }: NodeFacts,
): Standing {
  const isCertified = certifiedFrom !== null && issuedAt >= certifiedFrom;
  const isInformed = length === null ? null : knows(length, statement);
  // The key of a staged statement has not signed any certificates yet.
  const hasFollowed = isInformed === true && (isCertified || certifiedFrom === null);
  return { isCertified, isInformed, hasFollowed };
}

/** A node that never heard of a rolled-back statement still trusts the right key. */
function knows(length: number, { sequence, kind }: AuthoritySuccession): boolean {
  return length >= sequence || (kind === 'roll_back' && length < sequence - 1);
}

/** `standing` is null if the node is silent. */
function add(tally: NodeTally, standing: Standing | null): void {
  if (standing === null) {
    tally.silent += 1;
    return;
  }
  tally.active += 1;
  if (standing.isCertified) tally.certified += 1;
  if (standing.isInformed === null) tally.notHeard += 1;
  if (standing.isInformed === true) tally.informed += 1;
  if (standing.hasFollowed) tally.followed += 1;
}

function keepSlowest(slowest: Laggard[], laggard: Laggard): void {
  const isFull = slowest.length === MOST_LAGGARDS;
  if (isFull && laggard.issuedAt >= (slowest.at(-1)?.issuedAt ?? 0)) return;
  if (isFull) slowest.pop();
  const place = slowest.findIndex(({ issuedAt }) => issuedAt > laggard.issuedAt);
  slowest.splice(place === -1 ? slowest.length : place, 0, laggard);
}

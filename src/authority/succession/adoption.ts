/** Which nodes and treaties have followed a change of the authority key [authority-keys-11]. */
import { compareCodePoints, type Writable } from '../../base/json/write.ts';
import { formatInstant, formatInstantIfAny } from '../../base/timestamp.ts';
import type {
  AdoptionTally,
  FollowedSuccession,
  LaggardRow,
  PartnerAdoption,
  RoleAdoption,
} from '../../protocol/rows/adoption.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { descriptionRow } from '../node-descriptions.ts';
import { type TreatyBehind, treatiesBehind } from '../recognition/treaties-behind.ts';
import { Sliced } from '../subjects/sliced.ts';
import {
  type Adoption,
  type Laggard,
  laggardsIn,
  type NodeTally,
  standingOf,
} from './adoption-tally.ts';

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

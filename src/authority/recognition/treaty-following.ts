/** Replaces treaties whose subject has replaced its authority key [core-4-13-1]. */
import { isDeepStrictEqual } from 'node:util';
import type { Following, Treaty } from '../../../machines/recognition-treaty.ts';
import { HOUR_MS } from '../../base/duration.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson, JsonText } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import type { Fetched } from '../../protocol/contract/inputs.ts';
import type { ChainRefusal } from '../../protocol/records/authority-chain.ts';
import type { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';
import { keysOf } from '../../protocol/records/issuer.ts';
import type { RecognitionTreaty } from '../../protocol/records/recognition.ts';
import { signRecord } from '../../protocol/records/signed-record.ts';
import { acceptedKeys, rootKeyIn, type TreatyPin } from '../../protocol/records/treaty-chain.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import type { Run } from '../engine/execute.ts';
import { assertOwnIssuer, issuerOf } from '../engine/issuer.ts';
import { refusePrivateKeys } from '../engine/known-keys.ts';
import { refusalIn } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { fetchedFrom } from './imported-feeds.ts';
import { isLifecycleActive } from './lifecycle.ts';
import type { Edge } from './recognition-index.ts';
import { auditIssued, recordOf } from './treaties.ts';

/** What the edge needs to follow a chain. */
export const treatyPin: Handler<'treatyPin'> = (na, { treatyId }) => {
  const treaty = na.subjects.committed('recognition-treaty', treatyId)?.context;
  if (treaty === undefined) throw new Refusal('treaty_not_found');
  const { subject, subjectKeys, followed } = treaty;
  const pin: TreatyPin = {
    subject,
    subjectKeys,
    followed,
    rootKey: rootKeyIn(recordOf(treaty).metadata),
  };
  return new JsonText(JSON.stringify(pin));
};

/**
 * The edge has followed the chain, because that may take hundreds of signature checks. What it followed from cannot have
 * changed, because a treaty never does.
 */
export const followTreaty = (
  na: Authority,
  unit: UnitOfWork,
  given: CallInput<'followTreaty'> & Partial<Fetched>,
) => {
  const { treaty_id: treatyId, refusal, inForce, nextAt } = given;
  refusePrivateKeys(na, [given.root_public_key]);
  const treaty = unit.current('recognition-treaty', treatyId)?.context;
  if (treaty === undefined) throw new Refusal('treaty_not_found');
  assertOwnIssuer(na, treaty.issuer, 'wrong_issuer');
  const following = followingOf(na, unit, treaty, { refusal, inForce });
  const refused = refusalIn(unit.send('recognition-treaty', treatyId, following));
  if (refused?.refusal === 'chain_rejected' && refusal !== null) {
    const { reason: cause, sequence, message: problem } = refusal;
    throw new Refusal('chain_rejected', { cause, sequence, problem });
  }
  if (refused?.refusal === 'nothing_to_follow') {
    throw new Refusal('nothing_to_follow', { activates_at: nextAt });
  }
  if (refused !== null) throw new Refusal(refused.refusal);
  return new JsonText(issueSuccessor(na, unit, { treatyId, following, inForce }, given));
};

/**
 * Follows a chain that was fetched if it leads to other keys. Nobody has compared its root key, so the treaty must
 * name it.
 */
export const followFetchedKeys: Handler<'followFetchedKeys'> = (na, unit, given) => {
  const treaty = unit.current('recognition-treaty', given.treaty_id)?.context;
  if (treaty !== undefined && given.refusal === null) {
    if (namesKeys(treaty, given.inForce, unit.at)) throw new Refusal('nothing_to_follow');
    if (rootKeyIn(recordOf(treaty).metadata) === null) {
      throw new Refusal('chain_rejected', { cause: 'root_key_needed' });
    }
  }
  return followTreaty(na, unit, given);
};

/** How many treaties one unit replaces, because each takes a signature. */
const MOST_IN_A_UNIT = 32;

/** Removes keys whose overlap has ended from the treaties that followed their successions. */
export const endOverlaps: Run<null> = (na, unit) => {
  let left = MOST_IN_A_UNIT;
  for (const { treatyId, treaty } of na.recognition.edges()) {
    const { followed: inForce } = treaty;
    if (inForce.length === 0 || !isLifecycleActive(treaty, unit.at)) continue;
    // Only to fewer keys: a clock that is set back brings none back.
    const keys = acceptedKeys(inForce, treaty.subjectKeys, unit.at);
    if (keys.length >= treaty.subjectKeys.length) continue;
    const following = followingOf(na, unit, treaty, { refusal: null, inForce });
    // It may be revoked or replaced by a unit that is not committed yet.
    const refused = refusalIn(unit.send('recognition-treaty', treatyId, following));
    if (refused !== null) continue;
    issueSuccessor(na, unit, { treatyId, following, inForce });
    left -= 1;
    if (left === 0) break;
  }
  return null;
};

interface OfferedChain {
  readonly refusal: ChainRefusal | null;
  readonly inForce: readonly AuthoritySuccession[];
}

function followingOf(
  na: Authority,
  { at }: UnitOfWork,
  treaty: Treaty,
  { refusal, inForce }: OfferedChain,
): Following {
  const { length } = treaty.followed;
  return {
    type: 'follow',
    at,
    successorId: na.runtime.uuid(),
    problem: refusal?.reason ?? null,
    isNews: inForce.length > 0 && !(namesKeys(treaty, inForce, at) && inForce.length === length),
  };
}

/** Whether the treaty names exactly the keys that it would name once it has followed these statements. */
function namesKeys({ subjectKeys }: Treaty, inForce: OfferedChain['inForce'], at: number): boolean {
  return isDeepStrictEqual(acceptedKeys(inForce, subjectKeys, at), subjectKeys);
}

interface Replacement {
  readonly treatyId: string;
  readonly following: Following;
  readonly inForce: readonly AuthoritySuccession[];
}

/** Issues the successor of a treaty, with everything but the keys as it was; returns its text. */
function issueSuccessor(
  na: Authority,
  unit: UnitOfWork,
  { treatyId, following: { successorId }, inForce }: Replacement,
  origin: Partial<Fetched> = {},
): string {
  const last = inForce.at(-1);
  if (last === undefined) throw new Error(`Treaty ${treatyId} follows no statement`);
  const { subject, subjectKeys: former } = unit.existing('recognition-treaty', treatyId);
  const subjectKeys = acceptedKeys(inForce, former, unit.at);
  const { root_public_key } = last;
  const changes = { subjectKeys, followed: inForce, metadata: { root_public_key } };
  const json = sendSuccessor(na, unit, { treatyId, successorId, changes });
  unit.audit('recognition_treaty_followed', {
    treaty_id: treatyId,
    successor_treaty_id: successorId,
    subject_sovereign_id: subject,
    sequence: last.sequence,
    subject_public_keys: subjectKeys,
    ...fetchedFrom(origin),
  });
  return json;
}

interface Succession {
  readonly treatyId: string;
  readonly successorId: string;
  readonly changes: Partial<Pick<Treaty, 'subjectKeys' | 'followed' | 'expiresAt'>> & {
    /** Added to that of the treaty. */
    readonly metadata?: JsonObject;
  };
}

/** Signs what takes the place of a treaty, with everything but the changes as it was; returns its text. */
function sendSuccessor(
  na: Authority,
  unit: UnitOfWork,
  { treatyId, successorId, changes: { metadata, ...changes } }: Succession,
): string {
  const replaced = unit.existing('recognition-treaty', treatyId);
  const { subjectKeys, expiresAt } = { ...replaced, ...changes };
  const issuedAt = formatInstant(unit.at);
  const issuer = issuerOf(na, unit);
  const former = recordOf(replaced);
  const draft: RecognitionTreaty = {
    ...former,
    treaty_id: successorId,
    subject_public_keys: [...subjectKeys],
    issued_at: issuedAt,
    valid_from: issuedAt,
    expires_at: formatInstant(expiresAt),
    issued_by: issuer.keyId,
    metadata: { ...former.metadata, ...metadata },
  };
  const json = canonicalJson(signRecord(draft, keysOf(issuer)));
  const treaty: Treaty = {
    ...replaced,
    ...changes,
    json,
    issuedAt: unit.at,
    validFrom: issuedAt,
    revokedAt: null,
    revocationReason: null,
  };
  unit.send('recognition-treaty', successorId, { type: 'issue', treaty });
  return json;
}

/** Audited as what it is: a treaty that is issued, and one that is revoked. */
export const renewTreaty: Handler<'renewTreaty'> = (na, unit, given) => {
  const { treaty_id: treatyId, subject_public_keys: keys, validity_hours: hours } = given;
  refusePrivateKeys(na, keys ?? []);
  const treaty = unit.current('recognition-treaty', treatyId)?.context;
  if (treaty !== undefined) assertOwnIssuer(na, treaty.issuer, 'wrong_issuer');
  const successorId = na.runtime.uuid();
  const event = { type: 'renew' as const, at: unit.at, successorId };
  const refused = refusalIn(unit.send('recognition-treaty', treatyId, event));
  if (refused !== null) throw new Refusal(refused.refusal);
  const named = keys === null ? {} : { subjectKeys: keys, followed: [] };
  const changes = { ...named, expiresAt: unit.at + hours * HOUR_MS };
  const json = sendSuccessor(na, unit, { treatyId, successorId, changes });
  auditIssued(unit, successorId, unit.existing('recognition-treaty', successorId));
  const { revocationReason: reason } = unit.existing('recognition-treaty', treatyId);
  unit.audit('recognition_treaty_revoked', { treaty_id: treatyId, reason });
  return new JsonText(json);
};

export interface TreatyBehind {
  readonly treatyId: string;
  readonly treaty: Treaty;
  /** The statements of the subject that another treaty has followed. */
  readonly known: Chain;
  /** Whether the treaty accepts a key of the subject that was stolen. */
  readonly acceptsStolenKey: boolean;
}

type Chain = readonly AuthoritySuccession[];

const TREATIES_PER_SLICE = 1000;

/**
 * Treaties in force that have not followed their subject to its current key, although another treaty here has
 * [core-4-13-1]; yields after each slice.
 */
export function* treatiesBehind(
  edges: readonly Edge[],
  now: number,
): Generator<void, TreatyBehind[]> {
  const known = yield* knownChains(edges);
  if (known.size === 0) return [];
  const behind: TreatyBehind[] = [];
  for (const [index, { treatyId, treaty }] of edges.entries()) {
    if (index % TREATIES_PER_SLICE === TREATIES_PER_SLICE - 1) yield;
    if (!isLifecycleActive(treaty, now)) continue;
    const chain = known.get(treaty.subject)?.find((each) => isChainOf(treaty, each)) ?? [];
    if (treaty.followed.length >= chain.length) continue;
    const acceptsStolenKey = chain.some(
      ({ kind, from_key }) => kind === 'compromise' && treaty.subjectKeys.includes(from_key),
    );
    behind.push({ treatyId, treaty, known: chain, acceptsStolenKey });
  }
  return behind;
}

/** The longest chains that were followed, by subject; a name may belong to networks with different root keys. */
function* knownChains(edges: readonly Edge[]): Generator<void, ReadonlyMap<string, Chain[]>> {
  const known = new Map<string, Chain[]>();
  for (const [index, { treaty }] of edges.entries()) {
    if (index % TREATIES_PER_SLICE === TREATIES_PER_SLICE - 1) yield;
    const { subject, followed } = treaty;
    if (followed.length === 0) continue;
    const chains = known.get(subject) ?? [];
    const same = chains.findIndex((chain) => rootOf(chain) === rootOf(followed));
    if (same === -1) chains.push(followed);
    else if ((chains[same]?.length ?? 0) < followed.length) chains[same] = followed;
    known.set(subject, chains);
  }
  return known;
}

function rootOf(chain: Chain): string | undefined {
  return chain[0]?.root_public_key;
}

/** A treaty that has followed nothing yet belongs to the chain if it names one of its keys. */
function isChainOf({ followed, subjectKeys }: Treaty, chain: Chain): boolean {
  if (followed.length > 0) return rootOf(followed) === rootOf(chain);
  return chain.some(
    ({ from_key, to_key }) => subjectKeys.includes(from_key) || subjectKeys.includes(to_key),
  );
}

/** Recognition treaties [core-4-13]. */
import type { Treaty } from '../../../machines/recognition-treaty.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import { HOUR_MS } from '../../base/duration.ts';
import { parseJson } from '../../base/json/parse.ts';
import { canonicalJson, JsonText, type WithText } from '../../base/json/write.ts';
import { formatInstant, formatInstantIfAny } from '../../base/timestamp.ts';
import { oneSliceATurn, visitInSlices } from '../../base/work.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import type { PartnerAddress } from '../../protocol/contract/inputs.ts';
import { keysInForce } from '../../protocol/records/authority-chain.ts';
import { type Issuer, keysOf } from '../../protocol/records/issuer.ts';
import {
  type RecognitionTreaty,
  readRecognitionTreaty,
  successorIn,
} from '../../protocol/records/recognition.ts';
import { signRecord } from '../../protocol/records/signed-record.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { FetchState, TreatyRow } from '../../protocol/rows/recognition.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { AsyncResult } from '../engine/execute.ts';
import { assertOwnIssuer, costOf, issuerOf, textSignedAgain } from '../engine/issuer.ts';
import { refusePrivateKeys } from '../engine/known-keys.ts';
import { pageOf } from '../engine/page.ts';
import { partnerKey } from '../host-status.ts';
import { refusalIn } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { isLifecycleActive, lifecycleOf } from './lifecycle.ts';
import type { Edge } from './recognition-index.ts';
import { statusOf } from './record-lists.ts';

/** What is signed of the terms of a treaty. */
type Terms = Omit<CallInput<'issueTreaty'>, 'endpoint'>;

/** A row with a long chain takes time, so a page has few of them: it is counted like this many characters. */
const STATEMENT_COST = 4096;

export const issueTreaty: Handler<'issueTreaty'> = (na, unit, terms) => {
  refusePrivateKeys(na, terms.subject_public_keys);
  const issuer = terms.issuer_sovereign_id ?? na.settings.networkName;
  assertOwnIssuer(na, issuer, 'wrong_issuer');
  const record = buildTreaty({ ...issuerOf(na, unit), sovereignId: issuer }, terms);
  const json = canonicalJson(record);
  const treaty: Treaty = {
    json,
    issuer,
    subject: terms.subject_sovereign_id,
    subjectKeys: terms.subject_public_keys,
    issuedAt: unit.at,
    validFrom: record.valid_from,
    expiresAt: endOf(terms, unit.at),
    revokedAt: null,
    revocationReason: null,
    followed: [],
    ...(terms.endpoint !== null && { endpoint: terms.endpoint }),
  };
  unit.send('recognition-treaty', record.treaty_id, { type: 'issue', treaty });
  auditIssued(unit, record.treaty_id, treaty);
  return new JsonText(json);
};

export function auditIssued(unit: UnitOfWork, treatyId: string, treaty: Treaty): void {
  unit.audit('recognition_treaty_issued', {
    treaty_id: treatyId,
    issuer_sovereign_id: treaty.issuer,
    subject_sovereign_id: treaty.subject,
    allowed_roles: recordOf(treaty).scope.allowed_roles,
    ...endpointOf(treaty),
  });
}

/** The signed record, as it was issued. */
export function recordOf({ json }: Treaty): RecognitionTreaty {
  const record = readRecognitionTreaty(parseJson(json));
  if (record === null) throw new Error('A stored treaty is not a RecognitionTreaty');
  return record;
}

/** Builds a treaty, signed in the sovereign's name; the issuer in the terms is ignored. */
export function buildTreaty(issuer: Issuer, terms: Terms): RecognitionTreaty {
  const { sovereignId, keyId, now, uuid } = issuer;
  const issuedAt = formatInstant(now);
  const record = readRecognitionTreaty({
    treaty_id: uuid(),
    issuer_sovereign_id: sovereignId,
    subject_sovereign_id: terms.subject_sovereign_id,
    subject_public_keys: terms.subject_public_keys,
    scope: terms.scope,
    issued_at: issuedAt,
    valid_from: issuedAt,
    expires_at: formatInstant(endOf(terms, now)),
    issued_by: keyId,
    metadata: terms.metadata,
  });
  if (record === null) throw new Error('An issued treaty is not a RecognitionTreaty');
  return signRecord(record, keysOf(issuer));
}

function endOf({ validity_hours: hours }: Terms, now: number): number {
  return now + hours * HOUR_MS;
}

export const revokeTreaty: Handler<'revokeTreaty'> = (_na, unit, given) => {
  const { treaty_id: treatyId, reason } = given;
  const event = { type: 'revoke' as const, at: unit.at, reason };
  const refused = refusalIn(unit.send('recognition-treaty', treatyId, event));
  if (refused !== null) throw new Refusal(refused.refusal);
  unit.audit('recognition_treaty_revoked', { treaty_id: treatyId, reason });
  return { treaty_id: treatyId, status: 'revoked' };
};

export const setTreatyEndpoint: Handler<'setTreatyEndpoint'> = (_na, unit, given) => {
  const { treaty_id: treatyId, endpoint } = given;
  const event = { type: 'setEndpoint' as const, endpoint };
  const refused = refusalIn(unit.send('recognition-treaty', treatyId, event));
  if (refused !== null) throw new Refusal(refused.refusal);
  unit.audit('recognition_treaty_endpoint_set', { treaty_id: treatyId, endpoint });
  return { treaty_id: treatyId, endpoint };
};

export const listTreaties: Handler<'listTreaties'> = (na, given, at) => {
  const { issuer_sovereign_id: issuer, subject_sovereign_id: subject, status } = given;
  return pageOf(
    {
      ...na.treaties.matching({ issuer, subject, status }),
      row: ({ context }) => rowOf(na, context, at),
      lengthOf: ({ context: treaty }) =>
        costOf(na, treaty.json, treaty.issuedAt) + treaty.followed.length * STATEMENT_COST,
    },
    given,
  );
};

export const readTreaty: Handler<'readTreaty'> = (na, given, at) => {
  const edge = na.recognition.edge(given.treaty_id);
  if (edge === undefined) throw new Refusal('treaty_not_found');
  return rowOf(na, edge.treaty, at);
};

/** The authorities that are fetched, each with its treaties in force. */
export const readPartners: Handler<'readPartners'> = ({ recognition }, _given, at) =>
  new AsyncResult(oneSliceATurn(partnersOf([...recognition.edges()], at)));

/** They are read each second, and listing thousands takes as long as hundreds of heartbeats. */
const PARTNERS_PER_SLICE = 500;

function* partnersOf(edges: readonly Edge[], at: number): Generator<void, JsonText> {
  const partners = new Map<string, PartnerAddress & { treatyIds: string[] }>();
  yield* visitInSlices(edges, PARTNERS_PER_SLICE, ({ treatyId, treaty }) => {
    const { subject, endpoint = null } = treaty;
    if (endpoint === null || !isLifecycleActive(treaty, at)) return;
    const key = partnerKey(subject, endpoint);
    const partner = partners.get(key) ?? { subject, endpoint, treatyIds: [] };
    partner.treatyIds.push(treatyId);
    partners.set(key, partner);
  });
  const texts: string[] = [];
  yield* visitInSlices(partners.values(), PARTNERS_PER_SLICE, (partner) => {
    texts.push(JSON.stringify(partner));
  });
  return new JsonText(`[${texts.join()}]`);
}

/** Whether this authority has revoked the treaty. */
export function isTreatyRevoked(na: Authority, treatyId: string): boolean {
  return na.subjects.committed('recognition-treaty', treatyId)?.value === 'revoked';
}

/**
 * The sovereign's keys according to treaties in force, from any issuer or from one issuer only. A treaty lends no keys
 * once its revocation is decided, even if that is not on disk yet; one that takes its place lends them from then on.
 */
export function treatyKeysOf(
  na: Authority,
  sovereignId: string,
  now: number,
  issuer?: string,
): string[] {
  const treaties = na.recognition.sovereign(sovereignId)?.incoming ?? [];
  return treaties
    .filter(({ from }) => (issuer ?? from.id) === from.id)
    .flatMap((edge) => asDecided(na, edge))
    .filter((treaty) => isLifecycleActive(treaty, now))
    .flatMap(({ subjectKeys }) => subjectKeys);
}

/** The treaty, and its successor: the index does not have one that is not on disk yet. */
function asDecided({ subjects }: Authority, { treatyId, treaty }: Edge): Treaty[] {
  const decided = subjects.current('recognition-treaty', treatyId)?.context ?? treaty;
  if (decided.revokedAt === null || treaty.revokedAt !== null) return [decided];
  const successorId = successorIn(decided.revocationReason) ?? '';
  const successor = subjects.current('recognition-treaty', successorId)?.context;
  const isSame = successor?.subject === treaty.subject && successor.issuer === treaty.issuer;
  return isSame ? [successor] : [];
}

/** The sovereign's keys according to our own treaties in force with it; null if we never had one. */
export function ownTreatyKeys(na: Authority, sovereignId: string, now: number): string[] | null {
  const { networkName } = na.settings;
  const treaties = na.recognition.sovereign(sovereignId)?.incoming ?? [];
  if (!treaties.some(({ from }) => from.id === networkName)) return null;
  return treatyKeysOf(na, sovereignId, now, networkName);
}

function rowOf(na: Authority, treaty: Treaty, at: number): WithText<TreatyRow, 'treaty'> {
  const lifecycle = lifecycleOf(treaty, at);
  return {
    treaty: new JsonText(textSignedAgain(na, treaty.json, treaty.issuedAt)),
    status: statusOf(treaty),
    revoked_at: lifecycle.revoked_at,
    revocation_reason: lifecycle.revocation_reason,
    lifecycle,
    ...endpointOf(treaty),
    ...(treaty.endpoint != null && { fetch: fetchState(na, treaty.subject, treaty.endpoint) }),
    ...followedOf(treaty, at),
  };
}

export function fetchState(na: Authority, subject: string, endpoint: string): FetchState {
  const imported = na.subjects.committed('revocation-feed', sha256Hex(subject));
  const facts = na.hostStatus().partners.get(partnerKey(subject, endpoint));
  return {
    fetched_at: formatInstantIfAny(facts?.fetchedAt ?? null),
    imported_at: formatInstantIfAny(imported?.context.importedAt ?? null),
    failing_since: formatInstantIfAny(facts?.failingSince ?? null),
    problem: facts?.problem?.text ?? null,
  };
}

function endpointOf({ endpoint }: Treaty): { readonly endpoint?: string } {
  return endpoint == null ? {} : { endpoint };
}

function followedOf(
  { followed, subjectKeys }: Treaty,
  at: number,
): Pick<TreatyRow, 'followed'> | null {
  const last = followed.at(-1);
  if (last === undefined) return null;
  const { root_public_key, sequence } = last;
  const keys = keysInForce(followed, at).filter(({ public_key }) =>
    subjectKeys.includes(public_key),
  );
  return { followed: { root_public_key, sequence, keys } };
}

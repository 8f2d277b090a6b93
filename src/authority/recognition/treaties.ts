/** Recognition treaties (wire rules 4.13). */
import type { Treaty, TreatyRefusal } from '../../../machines/recognition-treaty.ts';
import type { Input, OperatorClaim } from '../../contract/claims.ts';
import type { JsonObject } from '../../json/value.ts';
import { canonicalJson, jsonText } from '../../json/write.ts';
import type { Issuer } from '../../records/issuer.ts';
import {
  type RecognitionTreaty,
  readRecognitionTreaty,
  type TreatyScope,
} from '../../records/recognition-treaty.ts';
import { signRecord } from '../../records/signed-record.ts';
import { Refusal } from '../../refusal.ts';
import { formatInstant } from '../../timestamp.ts';
import { isLifecycleActive, lifecycleOf } from '../../views/lifecycle.ts';
import type { Edge } from '../../views/recognition-index.ts';
import type { Authority, Handler } from '../engine/execute.ts';
import { accept } from '../engine/input.ts';
import { refusalIn } from '../engine/refusals.ts';
import type { UnitOfWork } from '../engine/unit-of-work.ts';
import { authenticateOperator } from '../enrolment/operator-keys.ts';
import { issuerOf } from '../protocol/issuer.ts';
import { assertOwnIssuer } from './own-issuer.ts';

const HOUR = 3_600_000;

export interface TreatyTerms {
  readonly subject: string;
  readonly subjectKeys: readonly string[];
  readonly scope: TreatyScope;
  readonly validityHours: number;
  readonly metadata: JsonObject;
  /** Null for this network's own name. */
  readonly issuer: string | null;
}

export interface IssueTreaty {
  readonly operator: OperatorClaim;
  readonly input: Input<TreatyTerms>;
}

export const issueTreaty: Handler<IssueTreaty> = (na, unit, command) => {
  authenticateOperator(na, unit, command.operator, 'privileged');
  const terms = accept(command.input);
  const issuer = terms.issuer ?? na.settings.networkName;
  assertOwnIssuer(na, issuer, 'wrong_issuer');
  const record = buildTreaty({ ...issuerOf(na, unit), sovereignId: issuer }, terms);
  const json = canonicalJson(record);
  const treaty: Treaty = {
    json,
    issuer,
    subject: terms.subject,
    subjectKeys: terms.subjectKeys,
    issuedAt: unit.at,
    validFrom: record.valid_from,
    expiresAt: endOf(terms, unit.at),
    revokedAt: null,
    revocationReason: null,
  };
  unit.send('recognition-treaty', record.treaty_id, { type: 'issue', treaty });
  unit.audit('recognition_treaty_issued', {
    treaty_id: record.treaty_id,
    issuer_sovereign_id: issuer,
    subject_sovereign_id: terms.subject,
    allowed_roles: terms.scope.allowed_roles,
  });
  return json;
};

/** The signed treaty of a sovereign: the terms' own issuer is not looked at. */
export function buildTreaty(
  { sovereignId, keyId, signer, now, uuid }: Issuer,
  terms: TreatyTerms,
): RecognitionTreaty {
  const issuedAt = formatInstant(now);
  const record = readRecognitionTreaty({
    treaty_id: uuid(),
    issuer_sovereign_id: sovereignId,
    subject_sovereign_id: terms.subject,
    subject_public_keys: terms.subjectKeys,
    scope: terms.scope,
    issued_at: issuedAt,
    valid_from: issuedAt,
    expires_at: formatInstant(endOf(terms, now)),
    issued_by: keyId,
    metadata: terms.metadata,
  });
  if (record === null) throw new Error('An issued treaty is not a RecognitionTreaty');
  return signRecord(record, signer, keyId);
}

function endOf({ validityHours }: TreatyTerms, now: number): number {
  return now + validityHours * HOUR;
}

export interface RevokeTreaty {
  readonly operator: OperatorClaim;
  readonly treatyId: string;
  readonly input: Input<{ readonly reason: string }>;
}

export const revokeTreaty: Handler<RevokeTreaty> = (na, unit, command) => {
  authenticateOperator(na, unit, command.operator, 'privileged');
  const { treatyId } = command;
  const { reason } = accept(command.input);
  const event = { type: 'revoke' as const, at: unit.at, reason };
  const refused = refusalIn<TreatyRefusal>(unit.send('recognition-treaty', treatyId, event));
  if (refused !== null) throw new Refusal(refused.refusal);
  unit.audit('recognition_treaty_revoked', { treaty_id: treatyId, reason });
  return jsonText({ treaty_id: treatyId, status: 'revoked' });
};

export interface TreatyFilter {
  readonly issuer: string | null;
  readonly subject: string | null;
  readonly status: string | null;
}

export const listTreaties: Handler<TreatyFilter> = (na, unit, filter) => {
  const rows = na.recognition
    .edges()
    .filter((edge) => passes(edge, filter))
    .map((edge) => rowOf(edge, unit));
  return `{"count":${rows.length},"recognition_treaties":[${rows.join(',')}]}`;
};

export const readTreaty: Handler<{ readonly treatyId: string }> = (na, unit, { treatyId }) => {
  const edge = na.recognition.edge(treatyId);
  if (edge === undefined) throw new Refusal('treaty_not_found');
  return rowOf(edge, unit);
};

/** Whether we hold the treaty as revoked. */
export function isTreatyRevoked(na: Authority, treatyId: string): boolean {
  return na.subjects.committed('recognition-treaty', treatyId)?.value === 'revoked';
}

/**
 * Keys that treaties still in force vouch for as the sovereign's: treaties of anyone, or of one issuer
 * alone.
 */
export function treatyKeysOf(
  na: Authority,
  sovereignId: string,
  now: number,
  issuer?: string,
): string[] {
  const treaties = na.recognition.sovereign(sovereignId)?.incoming ?? [];
  return treaties
    .filter(({ from, treaty }) => (issuer ?? from.id) === from.id && isLifecycleActive(treaty, now))
    .flatMap(({ treaty }) => treaty.subjectKeys);
}

function statusOf({ treaty }: Edge): 'active' | 'revoked' {
  return treaty.revokedAt === null ? 'active' : 'revoked';
}

function passes(edge: Edge, filter: TreatyFilter): boolean {
  return (
    (filter.issuer ?? edge.from.id) === edge.from.id &&
    (filter.subject ?? edge.to.id) === edge.to.id &&
    (filter.status ?? statusOf(edge)) === statusOf(edge)
  );
}

function rowOf(edge: Edge, unit: UnitOfWork): string {
  const lifecycle = lifecycleOf(edge.treaty, unit.at);
  const rest = jsonText({
    status: statusOf(edge),
    revoked_at: lifecycle.revoked_at,
    revocation_reason: lifecycle.revocation_reason,
    lifecycle,
  });
  return `{"treaty":${edge.treaty.json},${rest.slice(1)}`;
}

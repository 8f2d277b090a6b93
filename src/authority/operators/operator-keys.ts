/**
 * Operator keys [core-4-9], [core-4-19]. If the head of the state is kept, changes are answered only after it has been
 * signed.
 */
import { compareCodePoints, jsonText } from '../../base/json/write.ts';
import { formatInstant, formatInstantIfAny } from '../../base/timestamp.ts';
import type { Tier } from '../../protocol/contract/claims.ts';
import { publishedDocument } from '../../protocol/contract/documents.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { OperatorKeyRow } from '../../protocol/rows/operator-key.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { refusePrivateKeys } from '../engine/known-keys.ts';
import { refusalIn, type Subject, type SubjectTypes } from '../subjects/kinds.ts';
import type { Subjects } from '../subjects/subjects.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';

export const listOperatorKeys: Handler<'listOperatorKeys'> = (na) => {
  const keys = [...na.subjects.allCommitted('operator-key')];
  const rows = keys
    .sort(([a], [b]) => compareCodePoints(a, b))
    .map(([id, key]) => rowOf(id, key, na.operatorRegistry.isConfigured(id)));
  return { operator_keys: rows };
};

export const addOperatorKey: Handler<'addOperatorKey'> = (
  na,
  unit,
  { key_id: keyId, public_key: publicKey, tier },
  operator,
) => {
  na.signer.assertAvailable();
  refusePrivateKeys(na, [publicKey]);
  const isTaken = na.operatorRegistry.isTaken(keyId, publicKey);
  const by = operator.keyId;
  send(unit, keyId, { type: 'add', at: unit.at, tier, publicKey, by, isTaken });
  unit.audit('operator_key_added', {
    key_id: keyId,
    public_key: publicKey,
    tier,
    remote_addr: operator.remoteAddr,
  });
  unit.whenCommitted(() => publishOperatorKeys(na.subjects, na.publisher));
  return { key_id: keyId, public_key: publicKey, tier, added_at: formatInstant(unit.at) };
};

export const setOperatorKeyTier: Handler<'setOperatorKeyTier'> = (
  na,
  unit,
  { key_id: keyId, tier },
  operator,
) => {
  na.signer.assertAvailable();
  const otherPrivilegedKeys = otherUsableKeys(na, keyId, 'privileged').length;
  const isConfigured = na.operatorRegistry.isConfigured(keyId);
  const event = { type: 'set_tier' as const, tier, isConfigured, otherPrivilegedKeys };
  if (send(unit, keyId, event) === 'tier_set') {
    unit.audit('operator_key_tier_set', {
      key_id: keyId,
      tier,
      remote_addr: operator.remoteAddr,
    });
  }
  return { key_id: keyId, tier };
};

export const revokeOperatorKey: Handler<'revokeOperatorKey'> = (
  na,
  unit,
  { key_id: keyId, reason, unless_last_privileged: unlessLastPrivileged },
  operator,
) => {
  na.signer.assertAvailable();
  const remaining = otherUsableKeys(na, keyId);
  const emitted = send(unit, keyId, {
    type: 'revoke',
    at: unit.at,
    reason,
    by: operator.keyId,
    otherUsableKeys: remaining.length,
    otherPrivilegedKeys: otherUsableKeys(na, keyId, 'privileged').length,
    unlessLastPrivileged,
  });
  if (emitted === 'already_revoked') {
    return { key_id: keyId, revoked: true, already_revoked: true };
  }
  unit.audit('operator_key_revoked', {
    key_id: keyId,
    reason,
    revoked_by: operator.keyId,
    remote_addr: operator.remoteAddr,
  });
  unit.whenCommitted(() => warnWithoutPrivilegedKey(na));
  return {
    key_id: keyId,
    revoked: true,
    already_revoked: false,
    revoked_at: formatInstant(unit.at),
    reason,
    remaining_active_keys: remaining.length,
  };
};

/** Publishes the public keys that the edges use to verify operators. */
export function publishOperatorKeys(
  subjects: Subjects,
  publisher: Pick<Authority['publisher'], 'publish'>,
): void {
  const keys = [...subjects.allCommitted('operator-key')].flatMap(([id, { context }]) =>
    context.publicKey === undefined ? [] : [[id, context.publicKey]],
  );
  publisher.publish('operator_keys', publishedDocument(jsonText(keys)));
}

/** Sends an event to the key's machine; returns the type of event it emitted, or throws its refusal. */
function send(
  unit: UnitOfWork,
  keyId: string,
  event: SubjectTypes['operator-key']['event'],
): string | undefined {
  const emitted = unit.send('operator-key', keyId, event);
  const refused = refusalIn(emitted);
  if (refused !== null) throw new Refusal(refused.refusal);
  return emitted[0]?.type;
}

/** Ids of the other usable keys, of one tier or of any tier. */
function otherUsableKeys(
  { subjects, operatorRegistry }: Authority,
  keyId: string,
  tier?: Tier,
): string[] {
  return [...operatorRegistry.ids()].filter((id) => {
    const key = subjects.current('operator-key', id);
    const isOther = id !== keyId && key?.value === 'usable';
    return isOther && (tier === undefined || key.context.tier === tier);
  });
}

function warnWithoutPrivilegedKey(na: Authority): void {
  const privileged = otherUsableKeys(na, '', 'privileged');
  if (privileged.length === 0) na.log('no_privileged_operator_key_left', {});
}

function rowOf(
  id: string,
  { value, context }: Subject<'operator-key'>,
  isConfigured: boolean,
): OperatorKeyRow {
  return {
    key_id: id,
    public_key: context.publicKey ?? null,
    tier: context.tier,
    status: value === 'revoked' ? 'revoked' : 'usable',
    source: isConfigured ? 'configuration' : 'operator',
    added_at: formatInstantIfAny(context.addedAt ?? null),
    added_by: context.addedBy ?? null,
    revoked_at: formatInstantIfAny(context.revokedAt),
    revoked_by: context.revokedBy,
    reason: context.reason,
  };
}

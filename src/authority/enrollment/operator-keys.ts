/** Operator keys [core-4-9]. */
import type { OperatorKeyRefusal } from '../../../machines/operator-key.ts';
import { Refusal } from '../../refusal.ts';
import { formatInstant } from '../../timestamp.ts';
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import { refusalIn } from '../engine/refusals.ts';

export const revokeOperatorKey: Handler<'revokeOperatorKey'> = (
  na,
  unit,
  { keyId, reason },
  operator,
) => {
  const remaining = usableKeys(na).filter((id) => id !== keyId);
  const event = {
    type: 'revoke' as const,
    at: unit.at,
    reason,
    by: operator.keyId,
    otherUsableKeys: remaining.length,
  };
  const emitted = unit.send('operator-key', keyId, event);
  const refused = refusalIn<OperatorKeyRefusal>(emitted);
  if (refused !== null) throw new Refusal(refused.refusal);
  if (emitted.some(({ type }) => type === 'already_revoked')) {
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

function usableKeys(na: Authority): string[] {
  return na.settings.operatorKeyIds.filter(
    (id) => na.subjects.current('operator-key', id)?.value === 'usable',
  );
}

function warnWithoutPrivilegedKey(na: Authority): void {
  const privileged = usableKeys(na).some(
    (id) => na.subjects.current('operator-key', id)?.context.tier === 'privileged',
  );
  if (!privileged) na.log('no_privileged_operator_key_left', {});
}

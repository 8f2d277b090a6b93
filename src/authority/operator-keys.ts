/**
 * Operator keys [core-4-9], [core-4-19]. If the head of the state is kept, changes are answered only after it has been
 * signed.
 */
import type { OperatorKey } from '../../machines/operator-key.ts';
import { decodeBase64 } from '../base/crypto/base64.ts';
import { SEED_BYTES, signerFromSeed } from '../base/crypto/ed25519.ts';
import { compareCodePoints, jsonText } from '../base/json/write.ts';
import { formatInstant, formatInstantIfAny } from '../base/timestamp.ts';
import type { Tier } from '../protocol/contract/claims.ts';
import { publishedDocument } from '../protocol/contract/documents.ts';
import { Refusal } from '../protocol/refusals.ts';
import type { OperatorKeyRow } from '../protocol/rows/operator-key.ts';
import type { Authority } from './authority.ts';
import type { Handler } from './engine/admission.ts';
import { refusePrivateKeys } from './engine/known-keys.ts';
import { refusalIn, type Subject, type SubjectTypes, transition } from './subjects/kinds.ts';
import type { Subjects } from './subjects/subjects.ts';
import type { UnitOfWork } from './subjects/unit-of-work.ts';

export interface ConfiguredOperator {
  readonly tier: Tier;
  /** Base64. */
  readonly publicKey: string;
}

export type OperatorRegistry = ReturnType<typeof createOperatorRegistry>;

/**
 * Determines which operator keys are accepted [core-2-4]: the keys in the configuration, which takes precedence for
 * the keys it names, and the keys that operators have added, including decisions that are not committed yet.
 */
export function createOperatorRegistry(configured: ReadonlyMap<string, ConfiguredOperator>) {
  const held = new Set<string>();
  /** Ids of revoked keys from earlier configurations, which cannot be reused. */
  const former = new Set<string>();
  /** The public keys of both. */
  const known = new Set<string | undefined>();

  return {
    put(id: string, { context }: Subject<'operator-key'>) {
      held.add(id);
      known.add(context.publicKey);
    },
    /** Ids of all keys that are accepted or revoked. */
    ids: (): Iterable<string> => held,
    isConfigured: (keyId: string) => configured.has(keyId),
    /** The stored key as this process uses it; null if it is not used. Throws if it contradicts the configuration. */
    restored(keyId: string, stored: Subject<'operator-key'>): Subject<'operator-key'> | null {
      const { value, context } = stored;
      const given = configured.get(keyId);
      if (given === undefined) {
        if (context.addedAt !== undefined) return stored;
        former.add(keyId);
        known.add(context.publicKey);
        return null;
      }
      if (value === 'revoked') return stored;
      if (context.publicKey !== given.publicKey) {
        throw new Error(
          `Operator key ${keyId} was added by an operator with another public key than the configuration has; choose another id`,
        );
      }
      return { ...stored, context: { ...context, tier: given.tier } };
    },
    /** Adds the configured keys that are not stored. Call after everything is restored. */
    addConfigured(subjects: Subjects) {
      for (const [keyId, given] of configured) {
        if (subjects.current('operator-key', keyId) !== undefined) continue;
        const seed = decodeBase64(given.publicKey, SEED_BYTES);
        if (seed !== null && known.has(signerFromSeed(seed).publicKey)) {
          throw new Error(
            `Operator key ${keyId} is configured with the private key of another operator; give the public one, of the .pub file`,
          );
        }
        const { next } = transition('operator-key', undefined, { type: 'configure', ...given });
        const context = next.context as OperatorKey;
        subjects.restore('operator-key', keyId, { version: 0, value: next.value, context });
      }
    },
    /** Whether the public key belongs to a current or former operator, usable or revoked. */
    isKnown: (publicKey: string) => known.has(publicKey),
    /** Whether the public key is known, or the id was used in an earlier configuration. */
    isTaken: (keyId: string, publicKey: string) => former.has(keyId) || known.has(publicKey),
  };
}

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

/**
 * Determines which operator keys are accepted [core-2-4]: the keys in the configuration, which takes precedence for
 * the keys it names, and the keys that operators have added, including decisions that are not committed yet.
 */
import type { OperatorKey } from '../../../machines/operator-key.ts';
import { decodeBase64 } from '../../base/crypto/base64.ts';
import { SEED_BYTES, signerFromSeed } from '../../base/crypto/ed25519.ts';
import type { Tier } from '../../protocol/contract/claims.ts';
import { type Subject, type SubjectKind, transition } from '../subjects/kinds.ts';
import type { Subjects } from '../subjects/subjects.ts';

export interface ConfiguredOperator {
  readonly tier: Tier;
  /** Base64. */
  readonly publicKey: string;
}

export type OperatorRegistry = ReturnType<typeof createOperatorRegistry>;

export function createOperatorRegistry(configured: ReadonlyMap<string, ConfiguredOperator>) {
  const held = new Set<string>();
  /** Ids of revoked keys from earlier configurations, which cannot be reused. */
  const former = new Set<string>();
  /** The public keys of both. */
  const known = new Set<string | undefined>();

  return {
    follow(kind: SubjectKind, id: string, { context }: Subject) {
      if (kind !== 'operator-key') return;
      held.add(id);
      known.add((context as OperatorKey).publicKey);
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

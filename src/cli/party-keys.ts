/** The keys that a party to an agreement must have signed with. */
import type { PublicClient } from '../client/public-client.ts';
import { EXIT, failure } from './exit-codes.ts';

/** The authority and the sovereigns it recognizes, requested once. */
export interface KnownParties {
  /** Null when unknown. */
  readonly sovereignId: string | null;
  /** Empty when unknown. */
  readonly authorityKeys: readonly string[];
  /** Keys of the other sovereigns by name, from the active treaties of this one. */
  readonly recognized: ReadonlyMap<string, readonly string[]>;
}

export async function knownParties(client: PublicClient): Promise<KnownParties> {
  const { sovereign_id, network_authority } = await client.sovereign();
  const { recognition_treaties } = await client.treaties({
    issuer_sovereign_id: sovereign_id,
    status: 'active',
  });
  const recognized = new Map<string, readonly string[]>();
  for (const { treaty, lifecycle } of recognition_treaties) {
    if (lifecycle.state !== 'active' && lifecycle.state !== 'expiring_soon') continue;
    const { subject_sovereign_id: subject, subject_public_keys: keys } = treaty;
    recognized.set(subject, [...(recognized.get(subject) ?? []), ...keys]);
  }
  return { sovereignId: sovereign_id, authorityKeys: [network_authority.public_key], recognized };
}

/** `flag` is the option that gives the keys of this party. */
export function keysOf(
  { sovereignId, authorityKeys, recognized }: KnownParties,
  party: string,
  flag: string,
): readonly string[] {
  if (party === sovereignId && authorityKeys.length > 0) return authorityKeys;
  const keys = recognized.get(party);
  if (keys !== undefined) return keys;
  const message = `No key of "${party}" is known; give it with ${flag}`;
  throw failure(EXIT.refused, 'unknown_party', message);
}

/**
 * Operator keys and tiers from the data folder's configuration, the environment and the flags. Sources are merged; the
 * authority does not start if two of them disagree about a key, or if a key has no tier
 * [service-operator-authentication-1].
 */

import { signerFromSeed } from '../../base/crypto/ed25519.ts';
import { parseKeyText } from '../../base/keys/key-file.ts';
import { readPublicKey, saysPrivate } from '../../base/keys/read-key.ts';
import type { Tier } from '../../protocol/contract/claims.ts';
import type { ConfigFile } from './config-file.ts';
import type { Setting } from './options.ts';

export interface OperatorEntry {
  readonly keyId: string;
  /** Base64 of 32 bytes. */
  readonly publicKey: string;
  readonly tier: Tier;
}

/** Throws if a key is the private half of one of `otherKeys` or of another operator's key. */
export function loadOperators(
  setting: Setting,
  file: ConfigFile['operators'],
  otherKeys: readonly string[],
): OperatorEntry[] {
  const keys = merged('public key', [
    file.map(({ key_id, public_key }) => [key_id, publicKeyOf(key_id, public_key)] as const),
    Object.entries(setting('operatorPublicKeys') ?? {}).map(
      ([id, key]) => [id, publicKeyOf(id, key)] as const,
    ),
    pairs(setting, 'operatorPublicKey').map(([id, key]) => [id, publicKeyOrFile(id, key)] as const),
  ]);
  const tiers = merged('tier', [
    file.map(({ key_id, tier }) => [key_id, tierOf(key_id, tier)] as const),
    Object.entries(setting('operatorKeyTiers') ?? {}).map(
      ([id, tier]) => [id, tierOf(id, tier)] as const,
    ),
    pairs(setting, 'operatorKeyTier').map(([id, tier]) => [id, tierOf(id, tier)] as const),
  ]);
  for (const keyId of tiers.keys()) {
    if (!keys.has(keyId)) throw new Error(`Operator key ${keyId} has a tier but is not configured`);
  }
  const known = new Set([...otherKeys, ...keys.values()]);
  return [...keys].map(([keyId, publicKey]) => {
    const half = signerFromSeed(Buffer.from(publicKey, 'base64')).publicKey;
    if (known.has(half)) throw privateKeyOf(keyId);
    const tier = tiers.get(keyId);
    if (tier === undefined) {
      throw new Error(`Operator key ${keyId} has no tier; set it to standard or privileged`);
    }
    return { keyId, publicKey, tier };
  });
}

/** The values of a repeatable flag, each split at its first `=`. */
function pairs(
  setting: Setting,
  name: 'operatorPublicKey' | 'operatorKeyTier',
): (readonly [string, string])[] {
  return (setting(name) ?? []).map((value) => {
    const split = value.indexOf('=');
    if (split < 1) throw new Error(`${setting.labelOf(name)} must have the form id=value`);
    return [value.slice(0, split), value.slice(split + 1)];
  });
}

function merged<Value extends string>(
  what: string,
  sources: readonly (readonly (readonly [string, Value])[])[],
): Map<string, Value> {
  const all = new Map<string, Value>();
  for (const [keyId, value] of sources.flat()) {
    if ((all.get(keyId) ?? value) !== value) {
      throw new Error(`Operator key ${keyId} has two different values for its ${what}`);
    }
    all.set(keyId, value);
  }
  return all;
}

function publicKeyOf(keyId: string, text: string): string {
  if (saysPrivate(text)) throw privateKeyOf(keyId);
  const key = parseKeyText(text);
  if (key === null) throw new Error(`Operator key ${keyId} is not base64 of 32 bytes`);
  return key.toString('base64');
}

function publicKeyOrFile(keyId: string, text: string): string {
  if (parseKeyText(text) !== null || saysPrivate(text)) return publicKeyOf(keyId, text);
  return readPublicKey(text).toString('base64');
}

function privateKeyOf(keyId: string): Error {
  return new Error(
    `Operator key ${keyId} has a private key where a public key is expected: give the key in the .pub file that was made with it`,
  );
}

/** Throws unless the tier is one of the two that exist. */
function tierOf(keyId: string, tier: string): Tier {
  if (tier === 'standard' || tier === 'privileged') return tier;
  throw new Error(`Operator key ${keyId} has the unknown tier ${JSON.stringify(tier)}`);
}

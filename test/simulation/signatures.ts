/**
 * Everything that the authority signs carries the signatures of the keys that sign at that time, in this order, and no
 * others [authority-keys-10].
 */
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import {
  type AuthorityKeys,
  keysOf,
  oldestSigning,
  signingNow,
  signingSince,
} from './model/authority-keys.ts';
import { AUTHORITY, FIRST_KEY_ID, NEXT_KEYS } from './requests.ts';
import { insist } from './violation.ts';

interface Item {
  readonly key_id: string;
  readonly sig: string;
}

const KEYS: ReadonlyMap<string, string> = new Map([
  [FIRST_KEY_ID, AUTHORITY.publicKey],
  ...[AUTHORITY, ...NEXT_KEYS].map(({ publicKey }) => [publicKey, publicKey] as const),
]);

export class SignatureChecks {
  /** Signatures that were verified before, because documents are republished often. */
  readonly #genuine = new Set<string>();

  /** `possible`: the keys as last answered and as decided since. */
  assertDocument(name: string, record: JsonObject, possible: readonly AuthorityKeys[]): void {
    // The root key signed these.
    if (name === 'genesis' || name === 'authority_keys') return;
    for (const one of signedIn(record)) {
      const signers = this.#signersOf(name, one);
      const wanted = possible.map((keys) => wantedOf(one, keys).join());
      insist(
        signers === null || wanted.includes(signers.join()),
        () => `${name} is signed by ${signers} instead of ${wanted.join(' or ')}`,
      );
    }
  }

  assertAnswer(what: string, answer: unknown, keys: AuthorityKeys): void {
    for (const one of signedIn(answer as JsonValue)) {
      const signers = this.#signersOf(what, one);
      const wanted = wantedOf(one, keys);
      insist(
        signers === null || signers.join() === wanted.join(),
        () => `The answer to ${what} is signed by ${signers} instead of ${wanted}`,
      );
    }
  }

  /** The authority keys that signed it; null if someone else did. */
  #signersOf(what: string, record: JsonObject): readonly string[] | null {
    const items = itemsOf(record);
    const known = items.filter(({ key_id }) => KEYS.has(key_id));
    if (known.length === 0) return null;
    const text = canonicalJson(record, 'signature' in record ? 'signature' : 'signatures');
    return items.map(({ key_id, sig }) => {
      const key = KEYS.get(key_id) ?? '';
      insist(
        this.#isGenuine(key, text, sig),
        () => `${what} has a signature that is not by ${key_id}`,
      );
      return key;
    });
  }

  #isGenuine(key: string, text: string, sig: string): boolean {
    const known = `${key} ${sig} ${text}`;
    if (this.#genuine.has(known)) return true;
    if (!verifySignature(key, text, sig)) return false;
    this.#genuine.add(known);
    return true;
  }
}

/** Readers of a single signature cannot look for a second one: it is from the key that everyone knows. */
function wantedOf(record: JsonObject, keys: AuthorityKeys): readonly string[] {
  if ('signature' in record) return [oldestSigning(keys)];
  return typeof record.cert_id === 'string'
    ? signingSince(keys, Date.parse(String(record.issued_at)))
    : keysOf(signingNow(keys));
}

function itemsOf({ signature, signatures }: JsonObject): readonly Item[] {
  const items = signatures ?? (signature === null ? [] : [signature]);
  return items as unknown as readonly Item[];
}

/** The record itself and all records inside it. */
function* signedIn(value: JsonValue | undefined): Generator<JsonObject> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) {
    const record = value as JsonObject;
    if ('signatures' in record || typeof record.signature === 'object') yield record;
  }
  for (const member of Object.values(value)) yield* signedIn(member as JsonValue);
}

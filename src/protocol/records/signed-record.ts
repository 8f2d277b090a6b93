import type {
  LabeledSigner,
  RecordSigner,
  Signer,
  VerifySignature,
} from '../../base/crypto/primitives.ts';
import {
  areTexts,
  isJsonObject,
  isList,
  type JsonObject,
  type JsonValue,
} from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { MAX_KEYS, MAX_SIGNATURES, type SignatureItem } from './record.ts';

export type SignedRecord = JsonObject & { readonly signatures: readonly SignatureItem[] };
export type SinglySignedRecord = JsonObject & { readonly signature: SignatureItem | null };

/** The text that a list-form signature covers: every member of the record except `signatures`. */
export function signedText(record: JsonObject): string {
  return canonicalJson(record, 'signatures');
}

/** The text that a single-form signature covers: every member of the record except `signature`. */
export function singlySignedText(record: JsonObject): string {
  return canonicalJson(record, 'signature');
}

/** A signer with one key, labeled with the key itself. */
export function soleSigner(signer: Signer, keyId = signer.publicKey): RecordSigner {
  return { publicKey: signer.publicKey, keyId, sign: (text) => signer.sign(text), previous: null };
}

/** The same keys, each labeled with itself. */
export function labeledByKey({ publicKey, sign, previous }: RecordSigner): RecordSigner {
  const other = previous && { ...previous, keyId: previous.publicKey };
  return { publicKey, keyId: publicKey, sign, previous: other };
}

/** The key of records that have room for one signature: the older one, because others may not be known to all readers. */
export function singleKeyOf(signer: RecordSigner): LabeledSigner {
  return signer.isRolledBack ? signer : (signer.previous ?? signer);
}

/** The record with a signature by each key. */
export function signRecord<T extends JsonObject>(
  record: T,
  signer: RecordSigner,
): T & { readonly signatures: readonly SignatureItem[] } {
  return { ...record, signatures: signaturesOver(signedText(record), signer) };
}

/** The record with its one signature. */
export function signSingly<T extends JsonObject>(
  record: T,
  signer: RecordSigner,
  keyId = singleKeyOf(signer).keyId,
): T & { readonly signature: SignatureItem } {
  const { sig } = signatureOver(singlySignedText(record), singleKeyOf(signer));
  return { ...record, signature: { key_id: keyId, sig } };
}

export function signaturesOver(text: string | Uint8Array, signer: RecordSigner): SignatureItem[] {
  const { previous } = signer;
  const first = signatureOver(text, signer);
  return previous === null ? [first] : [first, signatureOver(text, previous)];
}

export function signatureOver(text: string | Uint8Array, signer: LabeledSigner): SignatureItem {
  return { key_id: signer.keyId, sig: signer.sign(text) };
}

/** Whether any signature of the record verifies under any of the keys. */
export function isSignedByAny(
  record: SignedRecord,
  publicKeys: CandidateKeys,
  verify: VerifySignature,
): boolean {
  return coversText(record.signatures, signedText(record), publicKeys, verify);
}

/** The same with all keys that a sovereign has had, which may be more than one search tries. */
export function isSignedByAnyOfMany(
  record: SignedRecord,
  publicKeys: readonly string[],
  verify: VerifySignature,
): boolean {
  for (let from = 0; from < publicKeys.length; from += MAX_KEYS) {
    if (isSignedByAny(record, publicKeys.slice(from, from + MAX_KEYS), verify)) return true;
  }
  return false;
}

/** Whether the record has its one signature and it verifies under any of the keys. */
export function isSinglySignedByAny(
  record: SinglySignedRecord,
  publicKeys: CandidateKeys,
  verify: VerifySignature,
): boolean {
  const { signature } = record;
  return (
    signature !== null && coversText([signature], singlySignedText(record), publicKeys, verify)
  );
}

/**
 * The search for a signature that verifies [core-1-5]. The caller of a verification chooses text,
 * signatures and keys, and Ed25519 hashes the whole text again for every signature and key. So repeats are
 * dropped, pairs that match by id come first, and there is a budget.
 */

/** Public keys, or public keys by id; in a list each key is its own id. */
export type CandidateKeys = readonly string[] | ReadonlyMap<string, string>;

/**
 * Caller-supplied public keys [core-1-5], [core-g26]: a list of strings, or an object of strings whose names are their
 * ids; null for anything else. Entries are not checked until they are tried.
 */
export function keyList(given: JsonValue): CandidateKeys | null {
  if (isJsonObject(given)) {
    const entries = Object.entries(given);
    return entries.every(isTextEntry) ? new Map(entries) : null;
  }
  return isList(given) && areTexts(given) ? given : null;
}

function isTextEntry(entry: [string, JsonValue]): entry is [string, string] {
  return typeof entry[1] === 'string';
}

/**
 * The budget of one verification, in hashed bytes. The arithmetic of one check takes as long as hashing CHECK_COST
 * bytes: 37 µs at about 2 ns a byte. The whole budget takes about 20 ms with libsodium. It covers 16 signatures times
 * 32 keys over a text of 4 KiB, and 19 checks of a text of half a megabyte.
 */
const BUDGET = 10 * 1024 * 1024;
const CHECK_COST = 16 * 1024;

const utf8 = new TextEncoder();

/** The bytes of a signed text, for verifiers that search it more than once. */
export function bytesOfText(text: string): Uint8Array {
  return utf8.encode(text);
}

/**
 * Wraps `verify` so that nothing verifies once the budget is spent. The first check is always made, so that a record of
 * any size can be verified with one signature and one key.
 */
export function withinBudget(verify: VerifySignature, budget = BUDGET): VerifySignature {
  let spent = 0;
  return (publicKey, text, signature) => {
    const isFirst = spent === 0;
    spent += CHECK_COST + text.length;
    return (isFirst || spent <= budget) && verify(publicKey, text, signature);
  };
}

/**
 * Whether any of the signatures over the text verifies under any of the keys, within the budget. `key_id`
 * selects nothing; it only determines which pairs are tried first.
 */
export function coversText(
  signatures: readonly SignatureItem[],
  text: string | Uint8Array,
  publicKeys: CandidateKeys,
  verify: VerifySignature,
): boolean {
  const [only] = signatures;
  if (only === undefined) return false;
  if (signatures.length === 1 && isKeyList(publicKeys) && publicKeys.length === 1) {
    return verify(publicKeys[0] ?? '', text, only.sig);
  }
  const candidates = distinctSignatures(signatures);
  const keys = distinctKeys(publicKeys);
  const signed = typeof text === 'string' ? bytesOfText(text) : text;
  const check = withinBudget(verify);
  const someVerifies = (isWanted: (keyId: string, id: string) => boolean) =>
    candidates.some(({ key_id, sig }) => {
      for (const [key, id] of keys) {
        if (isWanted(key_id, id) && check(key, signed, sig)) return true;
      }
      return false;
    });
  return someVerifies((keyId, id) => keyId === id) || someVerifies((keyId, id) => keyId !== id);
}

/** The candidates that are among these keys. */
export function candidatesAmong(
  publicKeys: CandidateKeys,
  wanted: readonly string[],
): CandidateKeys {
  if (isKeyList(publicKeys)) return publicKeys.filter((key) => wanted.includes(key));
  return new Map([...publicKeys].filter(([, key]) => wanted.includes(key)));
}

/** The keys that a search tries. */
export function triedKeys(publicKeys: CandidateKeys): string[] {
  return [...distinctKeys(publicKeys).keys()];
}

function distinctSignatures(signatures: readonly SignatureItem[]): readonly SignatureItem[] {
  const distinct = new Map<string, SignatureItem>();
  for (const item of signatures) {
    if (!distinct.has(item.sig)) distinct.set(item.sig, item);
    if (distinct.size === MAX_SIGNATURES) break;
  }
  return [...distinct.values()];
}

/** Each key once, with its id. */
function distinctKeys(publicKeys: CandidateKeys): ReadonlyMap<string, string> {
  const distinct = new Map<string, string>();
  for (const [id, key] of entriesOf(publicKeys)) {
    if (!distinct.has(key)) distinct.set(key, id);
    if (distinct.size === MAX_KEYS) break;
  }
  return distinct;
}

function entriesOf(publicKeys: CandidateKeys): Iterable<readonly [id: string, key: string]> {
  return isKeyList(publicKeys) ? publicKeys.map((key) => [key, key] as const) : publicKeys;
}

function isKeyList(publicKeys: CandidateKeys): publicKeys is readonly string[] {
  return Array.isArray(publicKeys);
}

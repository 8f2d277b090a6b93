/** Records that were issued under earlier keys of the authority, as they are read [authority-keys-10]. */
import { parseJson } from '../../base/json/parse.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { isSignerUnavailable } from '../../base/refusal.ts';
import { type SignedRecord, signRecord } from '../../protocol/records/signed-record.ts';
import type { Authority } from './authority.ts';

type Signed = JsonObject & { readonly issued_by: string } & SignedRecord;
type Keys = Pick<Authority, 'authorityKeys' | 'signer'>;

/** By how much the clock may have been set back between a record and a change of the keys. */
const SET_BACK_MS = 3_600_000;

/** Whether other keys may have signed when a record was issued, in milliseconds since the epoch. */
function isOfEarlierKeys({ authorityKeys }: Keys, issuedAt: number): boolean {
  const now = authorityKeys.chain().terms.at(-1);
  // For a later record, signing again changes nothing, because signatures are deterministic.
  return now !== undefined && issuedAt <= now.from + SET_BACK_MS;
}

/** The record with the signatures of the keys that sign now; unchanged if these are unavailable. */
export function signedAgain<T extends Signed>(na: Keys, record: T, issuedAt: number): T {
  if (!isOfEarlierKeys(na, issuedAt)) return record;
  try {
    return { ...record, ...signRecord({ ...record, issued_by: na.signer.keyId }, na.signer) };
  } catch (cause) {
    if (!isSignerUnavailable(cause)) throw cause;
    return record;
  }
}

/** Like `signedAgain`, for the text of a record. */
export function textSignedAgain(na: Keys, json: string, issuedAt: number): string {
  if (!isOfEarlierKeys(na, issuedAt)) return json;
  return canonicalJson(signedAgain(na, parseJson(json) as Signed, issuedAt));
}

/** Signing takes this many times as long as writing a record that is not signed again. */
const SIGNING_COST = 16;

/** The length of a row with this record, for a page that must not take longer because of its signatures. */
export function costOf(na: Keys, json: string, issuedAt: number): number {
  return isOfEarlierKeys(na, issuedAt) ? SIGNING_COST * json.length : json.length;
}

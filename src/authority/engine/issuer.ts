/** Issues records on behalf of this sovereign, and signs those of earlier keys again. */

import type { Certificate } from '../../../machines/certificate.ts';
import { SHA256 } from '../../base/crypto/digest.ts';
import { parseJson } from '../../base/json/parse.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { BuildFailure, Issuer } from '../../protocol/records/issuer.ts';
import { type SignedRecord, signRecord } from '../../protocol/records/signed-record.ts';
import { isSignerUnavailable, Refusal, type RefusalName, refuse } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';

export function issuerOf(
  { settings, signer, authorityKeys, runtime }: Authority,
  { at }: UnitOfWork,
): Issuer {
  const { current, trusted } = authorityKeys.chain();
  return {
    sovereignId: settings.networkName,
    keyId: signer.keyId,
    signer,
    previous: signer.previous,
    isRolledBack: signer.isRolledBack ?? false,
    ...(current !== null && { trusted }),
    sha256: SHA256,
    now: at,
    uuid: () => runtime.uuid(),
  };
}

/** Returns the record, or throws a refusal with the reason why it could not be built. */
export function built<T extends object>(result: T | BuildFailure<string>, refusal: RefusalName): T {
  return 'unbuilt' in result ? refuse(refusal, result.unbuilt) : result;
}

/** Acting under another sovereign's name is allowed unless the settings forbid it [core-g11]. */
export function assertOwnIssuer(na: Authority, issuer: string, refusal: RefusalName): void {
  if (na.settings.refuseForeignIssuers && issuer !== na.settings.networkName) {
    throw new Refusal(refusal, { expected: na.settings.networkName });
  }
}

/** The join certificate in the form its node receives [core-4-3]. */
export function signedCertificate(
  { settings: { networkName }, signer }: Authority,
  certId: string,
  { nodePublicKey, roles, issuedAt, expiresAt }: Certificate,
) {
  const then = signer.at(issuedAt);
  const record = {
    cert_id: certId,
    node_public_key: nodePublicKey,
    network_name: networkName,
    roles,
    issued_at: formatInstant(issuedAt),
    expires_at: formatInstant(expiresAt),
    issued_by: then.keyId,
  };
  return signRecord(record, then);
}

/** The certificate exactly as it was issued, because signatures are deterministic; null if it is no longer stored. */
export function storedCertificate(na: Authority, certId: string): JsonObject | null {
  const stored = na.subjects.current('certificate', certId);
  return stored === undefined ? null : signedCertificate(na, certId, stored.context);
}

/** A record that may have been issued under earlier keys of the authority [authority-keys-10]. */
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

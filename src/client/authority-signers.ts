/** Whose signatures count [authority-keys-7-2], as `createNetworkTrust` follows them; base64, the current key first. */
export interface AuthoritySigners {
  /** For what the authority says now, such as its revocation list. */
  signingNow(): readonly string[];
  /** For a record with this `issued_at`, such as a certificate. */
  signingAt(issuedAt: string): readonly string[];
}

/** A pinned authority key, or the keys that were followed from it. */
export type Authority = string | AuthoritySigners;

/** The keys whose signatures count for what the authority says now. */
export function keysNow(authority: Authority): readonly string[] {
  return typeof authority === 'string' ? [authority] : authority.signingNow();
}

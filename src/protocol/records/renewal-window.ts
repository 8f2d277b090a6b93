/** A certificate is renewed between these fractions of its lifetime. */
const FROM = 0.5;
const UNTIL = 0.75;

/**
 * After a planned change of the authority's key, nodes renew within this fraction of the overlap [authority-keys-7-3],
 * which leaves time for those that fail at first.
 */
export const SHARE_OF_OVERLAP = 0.75;

/** Instants are milliseconds since the epoch. */
export interface Lifetime {
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/**
 * A number from 0 to 1 derived from the random id of a certificate. Work done at this position in a time window is
 * spread evenly over a fleet.
 */
export function placeOf(certId: string): number {
  const place = Number.parseInt(certId.slice(0, 8), 16) / 2 ** 32;
  return Number.isFinite(place) ? Math.min(place, 1) : 1;
}

/** When to renew the certificate. Certificates issued together are not renewed together. */
export function renewalOf(certId: string, { issuedAt, expiresAt }: Lifetime): number {
  const share = FROM + placeOf(certId) * (UNTIL - FROM);
  return issuedAt + Math.floor(share * (expiresAt - issuedAt));
}

/** When the renewal window of every certificate with this lifetime ends. */
export function windowEnd({ issuedAt, expiresAt }: Lifetime): number {
  return issuedAt + UNTIL * (expiresAt - issuedAt);
}

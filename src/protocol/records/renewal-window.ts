/** When a certificate is renewed, between these shares of its lifetime. */
const FROM = 0.5;
const UNTIL = 0.75;

/** Instants are milliseconds since the epoch. */
export interface Lifetime {
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/**
 * A number from 0 to 1 that follows from the random id of a certificate: what is done at such a place of a window is
 * spread evenly over a fleet.
 */
export function placeOf(certId: string): number {
  const place = Number.parseInt(certId.slice(0, 8), 16) / 2 ** 32;
  return Number.isFinite(place) ? Math.min(place, 1) : 1;
}

/** When the certificate is to be renewed: certificates issued at once are not renewed at once. */
export function renewalOf(certId: string, { issuedAt, expiresAt }: Lifetime): number {
  const share = FROM + placeOf(certId) * (UNTIL - FROM);
  return issuedAt + Math.floor(share * (expiresAt - issuedAt));
}

/** When the window of every certificate of this lifetime is over. */
export function windowEnd({ issuedAt, expiresAt }: Lifetime): number {
  return issuedAt + UNTIL * (expiresAt - issuedAt);
}

/** The most live certificates (neither revoked, expired nor superseded) that one node key may have. */
export const MAX_LIVE_CERTIFICATES = 16;

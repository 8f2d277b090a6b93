/** The most live certificates (neither revoked, expired nor superseded) that one node key may have. */
export const MAX_LIVE_CERTIFICATES = 16;

/** From this many unexpired certificates of a key on, a renewal no longer supersedes the oldest live ones. */
export const MAX_UNEXPIRED_CERTIFICATES = 256;

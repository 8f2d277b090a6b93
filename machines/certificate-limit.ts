/** The most live certificates (neither revoked, expired nor superseded) that one node key may have. */
export const MAX_LIVE_CERTIFICATES = 16;

/** Once a key has this many unexpired certificates, a renewal no longer supersedes the oldest live ones. */
export const MAX_UNEXPIRED_CERTIFICATES = 256;

/** Certificates of one node key that may live at once: neither revoked, expired nor superseded. */
export const MAX_LIVE_CERTIFICATES = 16;

/** Bounds on the work that one record or request can cause [trust-1-5]. */
export const MAX_KEYS = 32;
export const MAX_SIGNATURES = 16;
export const MAX_VOTES = 256;
export const MAX_VALIDATORS = 256;
export const MAX_PATH_NODES = 64;
export const MAX_CAPABILITIES = 4096;
export const MAX_SOURCES = 1024;
export const MAX_ACCESS_TYPES = 1024;
/** The most characters of a free text, and of an agent descriptor in canonical form. */
export const MAX_TEXT_LENGTH = 1024;
export const MAX_DESCRIPTOR_LENGTH = 64 * 1024;
/** The most capability tags of an agent, each of which has an index of its own. */
export const MAX_TAGS = 128;

/**
 * How old, or ahead of our clock, a delete envelope may be, in milliseconds [service-agent-delete-envelope]. Unlike the
 * tolerance for signed requests, it cannot be configured. The edge checks it, and the authority remembers envelopes for
 * as long.
 */
export const DELETE_ENVELOPE_TOLERANCE = 5 * 60_000;

/**
 * How old, or ahead of our clock, a delete envelope may be, in milliseconds [service-agent-delete-envelope]. Unlike the
 * tolerance for signed requests it is no setting. The edge judges by it, the authority remembers for as long.
 */
export const DELETE_ENVELOPE_TOLERANCE = 5 * 60_000;

/** The message of a thrown value, which may be anything. */
export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** An error as one log line: its message, its stack and its causes. */
export function problemText(cause: unknown): string {
  return withCauses(cause).replace(/\s+/g, ' ').trim();
}

function withCauses(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const own = cause.stack ?? `${cause.name}: ${cause.message}`;
  return cause.cause === undefined ? own : `${own} caused by ${withCauses(cause.cause)}`;
}

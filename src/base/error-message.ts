/** What was thrown, as the text that it carries; anything may be thrown. */
export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

const ROLE = /^[\x21-\x7e]{1,128}$/;

/**
 * Which role names this network allows [core-4-1], [core-g7]: all printable names, or only those with given
 * prefixes.
 */
export function roleRule(prefixes: readonly string[] | null): (role: string) => boolean {
  return (role) =>
    ROLE.test(role) && (prefixes === null || prefixes.some((prefix) => role.startsWith(prefix)));
}

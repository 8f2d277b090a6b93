/** Entries of the audit log as tests of events and webhooks compare them. */
import type { TestAuthority } from './authority.ts';
import { invite } from './requests.ts';

/** Logs that many entries. */
export async function invites(na: TestAuthority, count: number): Promise<void> {
  for (let made = 0; made < count; made += 1) await invite(na);
}

export function indexesOf(events: readonly { readonly index: number }[]): number[] {
  return events.map(({ index }) => index);
}

export function numbers(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

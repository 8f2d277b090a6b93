/**
 * The digest of the revocation list's entries [core-5-5-1]. It begins with the key that issues the list, so a key that
 * may take over has its own digest, which is computed in slices before it is needed.
 */
import { createHash } from 'node:crypto';
import { withoutPause } from '../../base/slices.ts';
import type { ListEntry } from './list-document.ts';
import type { EntryDigest } from './signed-list.ts';

/** Hex SHA-256 of the issuer's key, a line feed and the canonical entries, joined with commas. */
export function createCrlDigest(issuer: string): EntryDigest {
  const hash = createHash('sha256').update(`${issuer}\n`);
  let isEmpty = true;
  const following = (text: string, isFirst: boolean) => (isFirst ? text : `,${text}`);
  return {
    add({ text }) {
      hash.update(following(text, isEmpty), 'latin1');
      isEmpty = false;
    },
    value(added) {
      const whole = hash.copy();
      for (const [index, { text }] of added.entries()) {
        whole.update(following(text, isEmpty && index === 0), 'latin1');
      }
      return whole.digest('hex');
    },
  };
}

export interface CrlDigests extends EntryDigest {
  /** Computes the digests that are missing, in slices, and drops those that are no longer needed. */
  prepare(): Generator<void, void>;
}

export interface CrlDigestsOptions {
  /** The key that issues the list now, and those that may issue it next. */
  issuers(): readonly [current: string, ...others: string[]];
  /** The entry with this id, which was added before. */
  entryOf(id: string): ListEntry;
}

/** How many entries one slice hashes, which takes a millisecond or two. */
const HASHED_AT_ONCE = 250;

export function createCrlDigests({ issuers, entryOf }: CrlDigestsOptions): CrlDigests {
  /** The ids of all entries, in the order of the list. */
  const order: string[] = [];
  const digests = new Map<string, EntryDigest>();

  /** Entries that are added meanwhile are part of it. */
  function* computed(issuer: string): Generator<void, EntryDigest> {
    const digest = createCrlDigest(issuer);
    for (let from = 0; from < order.length; from += HASHED_AT_ONCE) {
      if (from > 0) yield;
      for (const id of order.slice(from, from + HASHED_AT_ONCE)) digest.add(entryOf(id));
    }
    digests.set(issuer, digest);
    return digest;
  }

  return {
    add(entry) {
      if (order.length === 0) for (const issuer of issuers()) withoutPause(computed(issuer));
      for (const digest of digests.values()) digest.add(entry);
      order.push(entry.id);
    },
    value(added, issuer = issuers()[0]) {
      return (digests.get(issuer) ?? withoutPause(computed(issuer))).value(added);
    },
    *prepare() {
      const needed = issuers();
      for (const issuer of digests.keys()) if (!needed.includes(issuer)) digests.delete(issuer);
      for (const issuer of needed) if (!digests.has(issuer)) yield* computed(issuer);
    },
  };
}

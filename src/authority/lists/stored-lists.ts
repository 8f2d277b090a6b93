/**
 * Rebuilds the signed lists of a stored state from its subjects without opening the state, to check or restore it. If
 * the entries of a list are not the ones that were signed, the state is damaged.
 */
import type { Crl, SovereignFeed } from '../../../machines/signed-sequence.ts';
import type { StoredSubject } from '../../store/store.ts';
import { createAuthorityKeys } from '../authority-keys.ts';
import type { Subject } from '../subjects/kinds.ts';
import { toSubject } from '../subjects/subjects.ts';
import { CRL_DAMAGE, CRL_ID, createCrlDigest, revocationIn } from './crl.ts';
import { attestationRevokedBy, createSetDigest, feedDamage } from './feed.ts';
import type { ListEntry } from './list-document.ts';
import { type EntryDigest, inListOrder, type NumberedEntry } from './signed-list.ts';

export interface StoredFeed {
  readonly version: SovereignFeed | null;
  readonly entries: readonly ListEntry[];
}

export type StoredLists = ReturnType<typeof createStoredLists>;

/** `firstKey` is the public key of an authority whose key was never replaced. */
export function createStoredLists(firstKey: string) {
  // In a stored state, they come before the certificates.
  const authorityKeys = createAuthorityKeys();
  const issuerOf = (sequence: number) => authorityKeys.chain().issuerOf(sequence) ?? firstKey;
  let crl: Crl | null = null;
  const revocations: NumberedEntry[] = [];
  const versions = new Map<string, SovereignFeed>();
  const revoked = new Map<string, ListEntry[]>();

  function entriesOf(feed: string): ListEntry[] {
    const entries = revoked.get(feed) ?? [];
    revoked.set(feed, entries);
    return entries;
  }

  function crlEntries(): readonly ListEntry[] {
    return revocations.sort(inListOrder).map(({ entry }) => entry);
  }

  function feeds(): ReadonlyMap<string, StoredFeed> {
    const issuers = new Set([...versions.keys(), ...revoked.keys()]);
    return new Map(
      Array.from(issuers, (name) => [
        name,
        { version: versions.get(name) ?? null, entries: revoked.get(name) ?? [] },
      ]),
    );
  }

  return {
    add(subject: StoredSubject) {
      const { kind, id, snapshot } = subject;
      const { value, context } = snapshot;
      if (kind === 'authority-key') {
        authorityKeys.put(id, toSubject(subject) as Subject<'authority-key'>);
      }
      if (kind === 'crl' && id === CRL_ID) crl = context as Crl;
      if (kind === 'sovereign-feed') {
        const version = context as SovereignFeed;
        versions.set(version.issuer, version);
      }
      const certificate = revocationIn(issuerOf, { kind, id, value, context });
      if (certificate !== null) revocations.push(certificate);
      const attestation = attestationRevokedBy({ kind, id, value, context });
      if (attestation !== null) entriesOf(attestation.issuer).push(attestation.entry);
    },
    /** The authority's keys so far. */
    keys: authorityKeys.chain,
    /** Null before the first version. */
    crl: (): Crl | null => crl,
    /** The entries of the certificate revocation list, in order. */
    crlEntries,
    /** By issuer. */
    feeds,
    /** Null if every list matches what was signed; otherwise a description of the problem. */
    problem(): string | null {
      const issuer = authorityKeys.chain().current?.publicKey ?? firstKey;
      if (!isAsSigned(crl, crlEntries(), createCrlDigest(issuer))) return CRL_DAMAGE;
      for (const [name, { version, entries }] of feeds()) {
        if (!isAsSigned(version, entries, createSetDigest())) return feedDamage(name);
      }
      return null;
    },
  };
}

function isAsSigned(
  version: { readonly digest: string } | null,
  entries: readonly ListEntry[],
  digest: EntryDigest,
): boolean {
  return version === null ? entries.length === 0 : version.digest === digest.value(entries);
}

export function crlDigest(issuer: string, entries: readonly ListEntry[]): string {
  return createCrlDigest(issuer).value(entries);
}

export function feedDigest(entries: readonly ListEntry[]): string {
  return createSetDigest().value(entries);
}

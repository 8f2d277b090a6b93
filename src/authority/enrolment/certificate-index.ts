/** Which certificates a node key owns, kept as they are decided. The keys stay in the certificates. */
import type { SubjectListener, Subjects } from '../engine/subjects.ts';
import { createTextIndex, NONE } from '../tables/text-index.ts';

export interface CertificateIndex {
  readonly follow: SubjectListener;
  /** Whether the key owns a certificate that is neither revoked, expired nor superseded. */
  hasActive(nodePublicKey: string, now: number): boolean;
  /** Ids of the certificates the key owns or owned. */
  ownedBy(nodePublicKey: string): string[];
}

/** Nodes choose their keys: `seed` is a random number of 32 bits. */
export function createCertificateIndex(subjects: Subjects, seed: number): CertificateIndex {
  const ids: string[] = [''];
  const newest = createTextIndex(
    (number) => subjects.current('certificate', ids[number] ?? '')?.context.nodePublicKey ?? '',
    seed,
  );
  /** The certificate that the same key owned before, of those that are not its first. */
  const older = new Map<number, number>();

  function ownedBy(nodePublicKey: string): string[] {
    const owned: string[] = [];
    let number = newest.find(nodePublicKey);
    for (; number !== NONE; number = older.get(number) ?? NONE) owned.push(ids[number] ?? '');
    return owned;
  }

  function isActive(certId: string, now: number): boolean {
    const certificate = subjects.current('certificate', certId);
    if (certificate === undefined || certificate.value === 'revoked') return false;
    const { expiresAt, supersededFrom } = certificate.context;
    return expiresAt > now && (supersededFrom === null || supersededFrom > now);
  }

  return {
    follow(kind, id, { version, context }) {
      if (kind !== 'certificate') return;
      const { nodePublicKey } = context as { nodePublicKey: string };
      if (version > 1 && ownedBy(nodePublicKey).includes(id)) return;
      const number = ids.push(id) - 1;
      const before = newest.put(nodePublicKey, number);
      if (before !== NONE) older.set(number, before);
    },
    hasActive: (nodePublicKey, now) =>
      ownedBy(nodePublicKey).some((certId) => isActive(certId, now)),
    ownedBy,
  };
}

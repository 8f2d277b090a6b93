/** Which certificates a node key owns, kept as they are decided. */
import type { SubjectListener, Subjects } from './subjects.ts';

export interface CertificateIndex {
  readonly follow: SubjectListener;
  /** Whether the key owns a certificate that is neither revoked, expired nor superseded. */
  hasActive(nodePublicKey: string, now: number): boolean;
}

export function createCertificateIndex(subjects: Subjects): CertificateIndex {
  /** Nearly every key owns one certificate, so a list is made only for the second. */
  const owned = new Map<string, string | string[]>();

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
      const known = owned.get(nodePublicKey);
      if (known === undefined) owned.set(nodePublicKey, id);
      else if (typeof known === 'string') {
        if (known !== id) owned.set(nodePublicKey, [known, id]);
      } else if (version === 1 || !known.includes(id)) known.push(id);
    },
    hasActive(nodePublicKey, now) {
      const known = owned.get(nodePublicKey) ?? [];
      if (typeof known === 'string') return isActive(known, now);
      return known.some((certId) => isActive(certId, now));
    },
  };
}

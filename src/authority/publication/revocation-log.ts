/**
 * Follows the certificates: which are revoked, in the order of the CRL, and which node keys are
 * compromised. Fed with decisions as they are made, so the next CRL always continues the last one.
 */
import type { Certificate } from '../../../machines/certificate.ts';
import { canonicalJson } from '../../json/write.ts';
import { formatInstant } from '../../timestamp.ts';
import type { SubjectListener } from '../engine/subjects.ts';

export interface RevocationLog {
  readonly follow: SubjectListener;
  /** Canonical text of one CRL entry. */
  entryText(certificateId: string, revokedAt: number, reason: string): string;
  /** Canonical text of the CRL entries, joined with commas, in append order. */
  entriesText(): string;
  count(): number;
  /** Tells the text of each entry as it is decided. */
  onAdded(listener: (entryText: string) => void): void;
  isCompromised(nodePublicKey: string): boolean;
}

/** `issuer` goes into every entry of the list. */
export function createRevocationLog(issuer: string): RevocationLog {
  const listed = new Map<string, { readonly sequence: number; readonly text: string }>();
  const compromised = new Set<string>();
  const listeners: ((entryText: string) => void)[] = [];
  let inOrder = true;
  let joined = '';
  let lastSequence = -1;

  /** Certificates come from the store in no particular order: put them in the order of the CRL once. */
  function sort(): void {
    const entries = [...listed].sort(([, a], [, b]) => a.sequence - b.sequence);
    listed.clear();
    for (const [id, entry] of entries) listed.set(id, entry);
    joined = entries.map(([, { text }]) => text).join(',');
    inOrder = true;
  }

  function entryText(certificateId: string, revokedAt: number, reason: string): string {
    return canonicalJson({
      certificate_id: certificateId,
      revoked_at: formatInstant(revokedAt),
      reason,
      issuer,
    });
  }

  return {
    entryText,
    follow(kind, id, { value, context }) {
      if (kind !== 'certificate' || value !== 'revoked' || listed.has(id)) return;
      const { nodePublicKey, revokedAt, revocationReason, crlSequence } = context as Certificate;
      const reason = revocationReason ?? 'unspecified';
      if (reason === 'key_compromise') compromised.add(nodePublicKey);
      const text = entryText(id, revokedAt ?? 0, reason);
      const sequence = crlSequence ?? 0;
      listed.set(id, { sequence, text });
      if (sequence < lastSequence) inOrder = false;
      lastSequence = Math.max(lastSequence, sequence);
      if (inOrder) joined = joined === '' ? text : `${joined},${text}`;
      for (const listener of listeners) listener(text);
    },
    entriesText() {
      if (!inOrder) sort();
      return joined;
    },
    count: () => listed.size,
    onAdded: (listener) => listeners.push(listener),
    isCompromised: (nodePublicKey) => compromised.has(nodePublicKey),
  };
}

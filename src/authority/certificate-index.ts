/**
 * Which certificates a node key owns, kept as they are decided. The keys themselves stay in the
 * certificates: a table of numbers by the hash of the key leads there, at a fraction of what a map of all
 * keys takes to fill and to hold.
 */
import type { SubjectListener, Subjects } from './subjects.ts';

export interface CertificateIndex {
  readonly follow: SubjectListener;
  /** Whether the key owns a certificate that is neither revoked, expired nor superseded. */
  hasActive(nodePublicKey: string, now: number): boolean;
  /** Ids of the certificates the key owns or owned. */
  ownedBy(nodePublicKey: string): string[];
}

const FIRST_SLOTS = 1024;
/** What ends a chain, and stands in an empty slot: certificates are numbered from 1. */
const NONE = 0;

/** Nodes choose their keys, but what these collide on is up to `seed`, a random number of 32 bits. */
export function createCertificateIndex(subjects: Subjects, seed: number): CertificateIndex {
  const ids: string[] = [''];
  /** The certificate that the same key owned before, of those that are not its first. */
  const older = new Map<number, number>();
  /** Newest certificate of each key, and the hash of the key: open addressing, at most half full. */
  let slots = new Int32Array(FIRST_SLOTS);
  let hashes = new Int32Array(FIRST_SLOTS);
  let keys = 0;

  function keyOf(certificate: number): string | undefined {
    return subjects.current('certificate', ids[certificate] ?? '')?.context.nodePublicKey;
  }

  /** The slot of the key, or the empty one where it belongs. */
  function slotOf(nodePublicKey: string, hash: number): number {
    const mask = slots.length - 1;
    let slot = hash & mask;
    for (let held = slots[slot]; held !== undefined && held !== NONE; held = slots[slot]) {
      if (hashes[slot] === hash && keyOf(held) === nodePublicKey) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  function grow(): void {
    const [oldSlots, oldHashes] = [slots, hashes];
    const mask = 2 * oldSlots.length - 1;
    slots = new Int32Array(mask + 1);
    hashes = new Int32Array(mask + 1);
    for (const [old, certificate] of oldSlots.entries()) {
      if (certificate === NONE) continue;
      const hash = oldHashes[old] ?? 0;
      let slot = hash & mask;
      while (slots[slot] !== NONE) slot = (slot + 1) & mask;
      slots[slot] = certificate;
      hashes[slot] = hash;
    }
  }

  function ownedBy(nodePublicKey: string): string[] {
    const owned: string[] = [];
    let certificate = slots[slotOf(nodePublicKey, hashOf(nodePublicKey, seed))] ?? NONE;
    for (; certificate !== NONE; certificate = older.get(certificate) ?? NONE) {
      owned.push(ids[certificate] ?? '');
    }
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
      const hash = hashOf(nodePublicKey, seed);
      const slot = slotOf(nodePublicKey, hash);
      const before = slots[slot] ?? NONE;
      const certificate = ids.push(id) - 1;
      slots[slot] = certificate;
      hashes[slot] = hash;
      if (before === NONE) keys += 1;
      else older.set(certificate, before);
      if (2 * keys > slots.length) grow();
    },
    hasActive: (nodePublicKey, now) =>
      ownedBy(nodePublicKey).some((certId) => isActive(certId, now)),
    ownedBy,
  };
}

/** FNV-1a with a seed, its high bits folded into the low ones that choose the slot. */
function hashOf(text: string, seed: number): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return hash ^ (hash >>> 15);
}

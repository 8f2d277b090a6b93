/**
 * The certificates that each node key owns, including decisions that are not committed yet. The keys are stored
 * only in the certificates; the certificates of one key form a chain that starts with the newest. Each also has the
 * committed description of its key: counting a million would otherwise spell and look up each key.
 */
import type { Certificate } from '../../../machines/certificate.ts';
import type { NodeDescription } from '../../../machines/node-description.ts';
import type { Subject } from '../subjects/kinds.ts';
import {
  type CertificateNumbers,
  createBlocks,
  createTextIndex,
  NONE,
} from '../subjects/numbering.ts';
import type { Subjects } from '../subjects/subjects.ts';

export type CertificateIndex = ReturnType<typeof createCertificateIndex>;

class Block {
  /** Neighbors in the chain, by number; `NONE` at the ends. */
  readonly older: Int32Array;
  readonly newer: Int32Array;
  /** 1 if the number is in a chain. */
  readonly chained: Uint8Array;
  readonly descriptions: (NodeDescription | undefined)[];

  constructor(rows: number) {
    this.older = new Int32Array(rows);
    this.newer = new Int32Array(rows);
    this.chained = new Uint8Array(rows);
    this.descriptions = new Array<NodeDescription | undefined>(rows).fill(undefined);
  }
}

export interface CertificateIndexOptions {
  readonly subjects: Subjects;
  readonly numbers: CertificateNumbers;
  /** A random 32-bit number; it keeps nodes, which choose their own keys, from provoking collisions. */
  readonly seed: number;
  readonly rowsBits?: number;
  readonly firstSlots?: number;
}

export function createCertificateIndex({
  subjects,
  numbers,
  seed,
  rowsBits,
  firstSlots,
}: CertificateIndexOptions) {
  const { of: blockOf, rowOf } = createBlocks((rows) => new Block(rows), rowsBits);
  const newest = createTextIndex((number) => keyOf(number), seed, firstSlots);

  function certificateOf(number: number): Certificate | undefined {
    return subjects.current('certificate', numbers.idOf(number) ?? '')?.context;
  }

  function keyOf(number: number): string {
    return subjects.keyOfCertificate(number) || (certificateOf(number)?.nodePublicKey ?? '');
  }

  function olderThan(number: number): number {
    return blockOf(number).older[rowOf(number)] ?? NONE;
  }

  function newerThan(number: number): number {
    return blockOf(number).newer[rowOf(number)] ?? NONE;
  }

  function link(newer: number, older: number): void {
    if (newer !== NONE) blockOf(newer).older[rowOf(newer)] = older;
    if (older !== NONE) blockOf(older).newer[rowOf(older)] = newer;
  }

  function describe(number: number, description: NodeDescription | undefined): void {
    blockOf(number).descriptions[rowOf(number)] = description;
  }

  function descriptionAt(number: number): NodeDescription | undefined {
    return blockOf(number).descriptions[rowOf(number)];
  }

  function isChained(number: number): boolean {
    return blockOf(number).chained[rowOf(number)] === 1;
  }

  /**
   * The newest certificate goes to the front of the chain. The others follow in no particular order, because
   * certificates are restored at startup in the order of their ids.
   */
  function add(number: number, { nodePublicKey, issuedAt }: Certificate): void {
    blockOf(number).chained[rowOf(number)] = 1;
    // At startup, certificates come first.
    if (subjects.countCommitted('node-description') > 0) {
      describe(number, subjects.committed('node-description', nodePublicKey)?.context);
    }
    const first = newest.find(nodePublicKey);
    if (first !== NONE && issuedAt < (certificateOf(first)?.issuedAt ?? 0)) {
      link(number, olderThan(first));
      link(first, number);
      return;
    }
    newest.put(nodePublicKey, number);
    link(NONE, number);
    link(number, first);
  }

  function drop(number: number, { nodePublicKey }: Certificate): void {
    const [newer, older] = [newerThan(number), olderThan(number)];
    if (newer === NONE && older === NONE) newest.remove(nodePublicKey);
    else if (newer === NONE) newest.put(nodePublicKey, older);
    link(newer, older);
    const block = blockOf(number);
    const row = rowOf(number);
    block.older[row] = NONE;
    block.newer[row] = NONE;
    block.chained[row] = 0;
    block.descriptions[row] = undefined;
  }

  function ownedBy(nodePublicKey: string): string[] {
    const owned: string[] = [];
    let number = newest.find(nodePublicKey);
    for (; number !== NONE; number = olderThan(number)) owned.push(numbers.idOf(number) ?? '');
    return owned;
  }

  function isActive(certId: string, now: number): boolean {
    const certificate = subjects.current('certificate', certId);
    if (certificate === undefined || certificate.value === 'revoked') return false;
    const { expiresAt, supersededFrom } = certificate.context;
    return expiresAt > now && (supersededFrom === null || supersededFrom > now);
  }

  return {
    add(id: string, { context }: Subject<'certificate'>) {
      const number = numbers.take(id);
      if (!isChained(number)) add(number, context);
    },
    remove(id: string, { context }: Subject<'certificate'>) {
      drop(numbers.find(id), context);
    },
    describe(nodePublicKey: string, { context }: Subject<'node-description'>) {
      let number = newest.find(nodePublicKey);
      for (; number !== NONE; number = olderThan(number)) describe(number, context);
    },
    /** Ids of the key's certificates that are neither revoked, expired nor superseded. */
    liveOf: (nodePublicKey: string, now: number) =>
      ownedBy(nodePublicKey).filter((certId) => isActive(certId, now)),
    /** Ids of the key's certificates that have not expired, including superseded and revoked ones. */
    unexpiredOf: (nodePublicKey: string, now: number) =>
      ownedBy(nodePublicKey).filter(
        (certId) => (subjects.current('certificate', certId)?.context.expiresAt ?? 0) > now,
      ),
    /** Ids of all certificates that the key owns or has owned. */
    ownedBy,
    /** Whether the certificate is the newest of its key. */
    isNewest: (certId: string, nodePublicKey: string) =>
      newest.find(nodePublicKey) === numbers.find(certId),
    /** The committed description of the key that owns the certificate with this number. */
    descriptionAt,
    /** The same by the id of the certificate. */
    descriptionOf: (certId: string): NodeDescription | undefined =>
      descriptionAt(numbers.find(certId)),
  };
}

import { sha256Hex } from '../../base/crypto/digest.ts';

/** Documents derived from the recognition graph, which become stale together. */
export const GRAPH_DOCUMENTS = ['recognition_graph', 'connectome', 'atlas'] as const;

const DOCUMENT_NAMES = [
  'genesis',
  'authority_keys',
  'policy',
  'crl',
  /** The signed part of the newest version of the revocation list, for clients that have an earlier version. */
  'crl_revision',
  'bulletin',
  'sovereign_revocation_feed',
  'dashboard',
  'data_license_policy',
  /** Only for the edges; no route serves it. */
  'operator_keys',
  ...GRAPH_DOCUMENTS,
] as const;

export type DocumentName = (typeof DOCUMENT_NAMES)[number];

/** The revocation feed that this authority signs in the name of another issuer. */
type ForeignFeedName = `revocation_feed_of:${string}`;
type PublishedName = DocumentName | ForeignFeedName;

export function foreignFeedName(issuer: string): ForeignFeedName {
  return `revocation_feed_of:${issuer}`;
}

/** A public document as the edge serves it: its bytes and a strong validator. */
export interface PublishedDocument {
  /**
   * The bytes of published documents are in shared memory, so that every edge serves the same ones. They may be
   * overwritten once a newer version has reached every edge, so copy them if they are needed beyond the current turn.
   */
  readonly bytes: Uint8Array;
  readonly etag: string;
  /** When a new version must be requested, in milliseconds since the epoch. */
  readonly freshUntil: number;
}

/** The text of a document. */
export function documentText({ bytes }: PublishedDocument): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

export function publishedDocument(json: string, freshUntil = Number.MAX_VALUE): PublishedDocument {
  const shared = new SharedArrayBuffer(Buffer.byteLength(json));
  const bytes = Buffer.from(shared);
  bytes.write(json);
  return { bytes, etag: etagOf(bytes), freshUntil };
}

/** A document of a single thread. V8 does not account for shared memory, so data created per request is never in it. */
export function ownDocument(json: string): PublishedDocument {
  const bytes = Buffer.from(json);
  return { bytes, etag: etagOf(bytes), freshUntil: Number.MAX_VALUE };
}

export function etagOf(content: string | Uint8Array): string {
  return `"${sha256Hex(content).slice(0, 32)}"`;
}

/** The validator without its quotes, as live pages name it. */
export function versionOf(etag: string): string {
  return etag.slice(1, -1);
}

/** How many bytes to allocate for a growing document: an eighth more than needed, so that it rarely has to be moved. */
export function withHeadroom(needed: number): number {
  return needed + Math.max(65_536, needed >> 3);
}

/**
 * A few buffers of shared memory to which documents are written in turn. The garbage collector does not account for
 * shared memory: a new buffer for each document would exhaust the machine before the old ones are collected.
 */
export function createDocumentMemory() {
  const buffers: { bytes: Buffer; isFree: boolean }[] = [];
  return {
    /** A free buffer that is large enough, or a new one that replaces a free one that is too small. */
    take(length: number): { readonly buffer: number; readonly bytes: Buffer } {
      const fitting = buffers.findIndex(({ bytes, isFree }) => isFree && bytes.length >= length);
      const outgrown = buffers.findIndex(({ isFree }) => isFree);
      const buffer = [fitting, outgrown, buffers.length].find((index) => index >= 0) ?? 0;
      const bytes =
        buffers[fitting]?.bytes ?? Buffer.from(new SharedArrayBuffer(withHeadroom(length)));
      buffers[buffer] = { bytes, isFree: false };
      return { buffer, bytes: bytes.subarray(0, length) };
    },
    /** Only once no edge can still be reading its document. */
    release(buffer: number): void {
      const released = buffers[buffer];
      if (released !== undefined) released.isFree = true;
    },
  };
}

/**
 * The published documents. Their bytes and version numbers are in shared memory, so that an edge on another thread can
 * see without asking whether its copy is outdated.
 */

/** One document, as sent to the edges. */
export interface Publication {
  readonly name: PublishedName;
  /** 0 for a document without a shared version number; readers must then ask the authority first. */
  readonly version: number;
  readonly document: PublishedDocument;
}

export type DocumentPublisher = ReturnType<typeof createDocumentPublisher>;

export function createDocumentPublisher() {
  const bytes = DOCUMENT_NAMES.length * Int32Array.BYTES_PER_ELEMENT;
  const versions = new Int32Array(new SharedArrayBuffer(bytes));
  const publications = new Map<PublishedName, Publication>();
  const listeners: ((publication: Publication) => void)[] = [];
  const withdrawals: ((name: DocumentName) => void)[] = [];

  return {
    /** The newest version of each document, in the order of `DOCUMENT_NAMES`. */
    versions,
    /** The end offsets of the versions of the revocation list. */
    revisionEnds: createRevisionEnds(),
    publish(name: PublishedName, document: PublishedDocument): void {
      const index = indexOf(name);
      const version = index < 0 ? 0 : Atomics.add(versions, index, 1) + 1;
      const publication = { name, version, document };
      publications.set(name, publication);
      for (const listener of listeners) listener(publication);
    },
    /** Marks the document as outdated; it will be rebuilt on request. */
    withdraw(name: DocumentName): void {
      if (!publications.delete(name)) return;
      Atomics.add(versions, indexOf(name), 1);
      for (const withdrawn of withdrawals) withdrawn(name);
    },
    isCurrent(name: DocumentName, now: number): boolean {
      const publication = publications.get(name);
      return publication !== undefined && now < publication.document.freshUntil;
    },
    /**
     * Calls back with everything published so far and then with each publication; optionally also with the name of each
     * document that becomes outdated.
     */
    follow(
      listener: (publication: Publication) => void,
      withdrawn?: (name: DocumentName) => void,
    ): void {
      for (const publication of publications.values()) listener(publication);
      listeners.push(listener);
      if (withdrawn !== undefined) withdrawals.push(withdrawn);
    },
  };
}

/** An edge's copy of the published documents. */
export type DocumentCache = ReturnType<typeof createDocumentCache>;

export function createDocumentCache(versions: Int32Array) {
  const held = new Map<PublishedName, Publication>();
  const listeners: ((name: PublishedName, document: PublishedDocument) => void)[] = [];
  return {
    take(publication: Publication): void {
      const { name, document } = publication;
      const before = held.get(name)?.document.etag;
      held.set(name, publication);
      if (before !== document.etag) for (const listener of listeners) listener(name, document);
    },
    /** Calls back with every publication whose bytes differ from the previous ones. */
    onChange(listener: (name: PublishedName, document: PublishedDocument) => void): void {
      listeners.push(listener);
    },
    /** Calls back with everything received so far and then like `onChange`. */
    follow(listener: (name: PublishedName, document: PublishedDocument) => void): void {
      for (const [name, { document }] of held) listener(name, document);
      listeners.push(listener);
    },
    /** Undefined if there is none or a newer version is about to arrive. */
    get(name: DocumentName): PublishedDocument | undefined {
      const publication = held.get(name);
      if (publication === undefined) return undefined;
      return publication.version === Atomics.load(versions, indexOf(name))
        ? publication.document
        : undefined;
    },
    /** The last received version, even if a newer one is about to arrive; undefined if there is none. */
    latest: (name: PublishedName): PublishedDocument | undefined => held.get(name)?.document,
  };
}

/** Negative for documents without a shared version number. */
function indexOf(name: PublishedName): number {
  return (DOCUMENT_NAMES as readonly string[]).indexOf(name);
}

/**
 * The end offset of each recent version of the revocation list [core-5-5-1]. Entries are only appended, so the
 * difference between two versions is the text between their ends. The authority writes to this shared memory, and every
 * edge reads it.
 */

/** Differences are served for this many previous versions. */
export const KEPT_REVISIONS = 10_000;

/** More slots than versions served, because an edge may read with an older version than the newest. */
const SLOTS = 16_384;

/** The number of bytes from the first entry to the end of the last, by sequence number. */
export type RevisionEnds = Int32Array;

export function createRevisionEnds(): RevisionEnds {
  return new Int32Array(new SharedArrayBuffer(SLOTS * Int32Array.BYTES_PER_ELEMENT));
}

/** Must be called with increasing sequence numbers. */
export function noteEnd(ends: RevisionEnds, sequence: number, end: number): void {
  Atomics.store(ends, sequence % SLOTS, end);
}

/** Valid only for a published version and the `KEPT_REVISIONS` versions before it. */
export function endOf(ends: RevisionEnds, sequence: number): number {
  return Atomics.load(ends, sequence % SLOTS);
}

/** The text before the entries in canonical JSON. */
const BEFORE_ENTRIES = '"revoked_certificates":[';
const AFTER_ENTRIES = '],"sequence":';

/** The start of each entry. It cannot occur inside a value, where quotes are escaped. */
const ENTRY = '{"certificate_id":"';

/** The last certificate in a published list; null for an empty list or another document. */
export function lastRevokedIn(bytes: Uint8Array): string | null {
  const entries = entriesIn(bytes);
  if (entries === null || entries.from === entries.to) return null;
  const list = Buffer.from(bytes.buffer, bytes.byteOffset, entries.to);
  const from = list.lastIndexOf(ENTRY) + ENTRY.length;
  return list.toString('latin1', from, list.indexOf('"', from));
}

/** The sequence of a published list; 0 for another document. */
export function sequenceIn(bytes: Uint8Array): number {
  const entries = entriesIn(bytes);
  if (entries === null) return 0;
  const from = bytes.byteOffset + entries.to + AFTER_ENTRIES.length;
  const after = Buffer.from(
    bytes.buffer,
    from,
    Math.min(DIGITS, bytes.byteOffset + bytes.byteLength - from),
  );
  return Number.parseInt(after.toString('latin1'), 10) || 0;
}

/** No sequence has more. */
const DIGITS = 16;

/** The offsets at which the first entry of a published list begins and the last one ends; null for another document. */
export function entriesIn(
  bytes: Uint8Array,
): { readonly from: number; readonly to: number } | null {
  const list = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const before = list.indexOf(BEFORE_ENTRIES);
  const to = list.lastIndexOf(AFTER_ENTRIES);
  return before < 0 || to < 0 ? null : { from: before + BEFORE_ENTRIES.length, to };
}

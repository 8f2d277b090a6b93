/** The public documents as readers have received them, across all processes of the authority. */
import type { JsonObject } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { insist } from './violation.ts';

/** Whether the document has a sequence number, which never names two contents. */
function isSequence(name: string): boolean {
  return name === 'crl' || name.includes('revocation_feed');
}

export class PublishedDocuments {
  readonly #assertSigned: (name: string, record: JsonObject) => void;
  readonly #current = new Map<string, JsonObject>();
  /** Every version that anyone has ever seen. */
  readonly #seen = new Map<string, string>();

  constructor(assertSigned: (name: string, record: JsonObject) => void) {
    this.#assertSigned = assertSigned;
  }

  take(name: string, record: JsonObject): void {
    this.#current.set(name, record);
    this.#assertSigned(name, record);
    if (isSequence(name)) this.assertOneContent(name, record);
  }

  /** The content must stay the same; the keys that sign it may change. */
  assertOneContent(name: string, { signatures: _, ...record }: JsonObject): void {
    const version = `${name} ${record.sequence}`;
    const text = canonicalJson(record);
    const before = this.#seen.get(version) ?? text;
    insist(before === text, () => `${version} names two contents`);
    this.#seen.set(version, text);
  }

  current(name: string): JsonObject | null {
    return this.#current.get(name) ?? null;
  }

  /** A new process publishes everything again; what was seen remains known. */
  forgetCurrent(): void {
    this.#current.clear();
  }
}

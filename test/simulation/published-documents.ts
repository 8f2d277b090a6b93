/** The public documents as readers have got them, in all the lives of the authority. */
import type { JsonObject } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { insist } from './violation.ts';

/** Documents that carry a sequence: one number never names two contents. */
function isSequence(name: string): boolean {
  return name === 'crl' || name.includes('revocation_feed');
}

export class PublishedDocuments {
  readonly #assertSigned: (name: string, record: JsonObject) => void;
  readonly #current = new Map<string, JsonObject>();
  /** Every version that anybody has ever seen. */
  readonly #seen = new Map<string, string>();

  constructor(assertSigned: (name: string, record: JsonObject) => void) {
    this.#assertSigned = assertSigned;
  }

  take(name: string, record: JsonObject): void {
    this.#current.set(name, record);
    this.#assertSigned(name, record);
    if (isSequence(name)) this.assertOneContent(name, record);
  }

  /** The keys that sign it may change. */
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

  /** A new process publishes everything anew; what was seen stays seen. */
  forgetCurrent(): void {
    this.#current.clear();
  }
}

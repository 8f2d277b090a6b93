/** The public documents as readers have got them, in all the lives of the authority. */

import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { documentText } from '../../src/protocol/contract/documents.ts';
import type { Publication } from '../../src/protocol/contract/publications.ts';
import { AUTHORITY } from './requests.ts';
import { insist } from './violation.ts';

/** Documents that carry a sequence: one number never names two contents. */
function isSequence(name: string): boolean {
  return name === 'crl' || name.includes('revocation_feed');
}

export class PublishedDocuments {
  readonly #current = new Map<string, JsonObject>();
  /** Every version that anybody has ever seen. */
  readonly #seen = new Map<string, string>();

  take({ name, document }: Publication): void {
    const text = documentText(document);
    const record = JSON.parse(text) as JsonObject;
    this.#current.set(name, record);
    if (!isSequence(name)) return;
    const version = `${name} ${record.sequence}`;
    const before = this.#seen.get(version);
    insist(before === undefined || before === text, () => `${version} names two contents`);
    if (before === undefined) insist(isSigned(record), () => `${version} is not signed`);
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

function isSigned(record: JsonObject): boolean {
  const [signature] = record.signatures as readonly { readonly sig: string }[];
  const text = canonicalJson(record, 'signatures');
  return signature !== undefined && verifySignature(AUTHORITY.publicKey, text, signature.sig);
}

/**
 * The audit log: append-only entries in a hash chain, stored in the same transaction as the change they
 * record [core-4-16]. A removed or altered entry breaks the chain.
 */
import { sha256Hex } from '../../base/crypto/digest.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { Runtime } from '../../base/runtime.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { AuditEvent } from '../../protocol/rows/audit-event.ts';
import type { AuditEntry, SealedEntry } from '../../store/store.ts';

export interface AuditDraft {
  readonly type: AuditEvent;
  readonly details: JsonObject;
  /** The operator key that caused the event, if any. */
  readonly actorKeyId: string | null;
}

export function createAuditChain(head: string, runtime: Runtime) {
  let last = head;
  return {
    /** Creates the next entries of the chain, which must be stored in the order in which they were created. */
    extend(drafts: readonly AuditDraft[], at: number): SealedEntry[] {
      return drafts.map(({ type, details, actorKeyId }) => {
        const entry = {
          event_id: runtime.uuid(),
          event_type: type,
          details: boundedDetails(details),
          created_at: formatInstant(at),
          ...(actorKeyId !== null && { actor_key_id: actorKeyId }),
          prev_hash: last,
        };
        const text = canonicalJson(entry);
        last = sha256Hex(text);
        return { entry: { ...entry, hash: last }, text };
      });
    },
  };
}

/** Limits on what an entry copies from a caller: characters in a text, and items in a list. */
const MAX_TEXT = 256;
const MAX_ITEMS = 64;

/** Limits the details of an entry: the log is kept forever, so callers must not control the size of its entries. */
function boundedDetails(details: JsonObject): JsonObject {
  if (areBounded(details)) return details;
  return Object.fromEntries(Object.entries(details).map(([name, value]) => [name, bounded(value)]));
}

/** Most details are only a few short texts, and remain unchanged. */
function areBounded(details: JsonObject): boolean {
  for (const name in details) {
    const value = details[name];
    const isShort =
      typeof value === 'string' ? value.length <= MAX_TEXT : typeof value !== 'object';
    if (!isShort && value !== null) return false;
  }
  return true;
}

function bounded(value: JsonValue): JsonValue {
  if (typeof value === 'string') return beginningOf(value, MAX_TEXT);
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map(bounded);
  return isJsonObject(value) ? boundedDetails(value) : value;
}

/** At most this many UTF-16 units of the text, without half of a surrogate pair, which no reader accepts. */
export function beginningOf(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = (text.codePointAt(most - 1) ?? 0) > 0xffff ? most - 1 : most;
  return text.slice(0, end);
}

export type ChainVerdict =
  | { readonly valid: true; readonly length: number; readonly head: string }
  | { readonly valid: false; readonly position: number; readonly reason: string };

/** Checks a chain entry by entry. */
export function createChainCheck(genesisHash: string) {
  let head = genesisHash;
  let length = 0;
  return {
    /** Null if the entry continues the chain; otherwise the reason why it breaks it. */
    add({ hash, ...entry }: AuditEntry): 'broken_link' | 'altered_entry' | null {
      if (entry.prev_hash !== head) return 'broken_link';
      if (sha256Hex(canonicalJson(entry)) !== hash) return 'altered_entry';
      head = hash;
      length += 1;
      return null;
    },
    get length() {
      return length;
    },
    get head() {
      return head;
    },
  };
}

/** Checks a complete chain from its first entry; `position` counts from 1. */
export async function verifyAuditChain(
  entries: Iterable<AuditEntry> | AsyncIterable<AuditEntry>,
  genesisHash: string,
): Promise<ChainVerdict> {
  const check = createChainCheck(genesisHash);
  for await (const entry of entries) {
    const reason = check.add(entry);
    if (reason !== null) return { valid: false, position: check.length + 1, reason };
  }
  return { valid: true, length: check.length, head: check.head };
}

/**
 * Committed attestations or treaties, oldest first, and those of each issuer, about each subject and in each status: a
 * filter that a stranger chooses must not look at all of them.
 */
import type { Attestation } from '../../../machines/attestation.ts';
import type { Treaty } from '../../../machines/recognition-treaty.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import { firstIndex, insertInOrder } from '../../base/ordered-list.ts';
import type { ListPlace } from '../../protocol/contract/inputs.ts';

interface ListedRecord<Context> extends ListPlace {
  context: Context;
}

/** Null members do not filter. */
interface RecordFilter {
  readonly issuer: string | null;
  readonly subject: string | null;
  readonly status: string | null;
}

export function createRecordLists<Context extends Attestation | Treaty>() {
  type Listed = ListedRecord<Context>;
  const known = new Map<string, Listed>();
  const all: Listed[] = [];
  let isLoading = true;
  const lists: Readonly<Record<keyof RecordFilter, Map<string, Listed[]>>> = {
    issuer: new Map(),
    subject: new Map(),
    status: new Map(),
  };

  function add(by: keyof RecordFilter, record: Listed): void {
    const key = valuesOf(record.context)[by];
    const list = lists[by].get(key);
    if (list === undefined) lists[by].set(key, [record]);
    else insertInOrder(list, record, comparePlaces);
  }

  function place(record: Listed): void {
    for (const by of FILTERS) add(by, record);
  }

  function update(record: Listed, context: Context): void {
    const before = statusOf(record.context);
    record.context = context;
    if (isLoading) return;
    const list = lists.status.get(before) ?? [];
    list.splice(
      firstIndex(list, (other) => comparePlaces(other, record) >= 0),
      1,
    );
    add('status', record);
  }

  return {
    put(id: string, { context }: { readonly context: Context }) {
      const held = known.get(id);
      if (held !== undefined) return update(held, context);
      const record = { at: context.issuedAt, id, context };
      known.set(id, record);
      if (isLoading) {
        all.push(record);
        return;
      }
      insertInOrder(all, record, comparePlaces);
      place(record);
    },
    /** Sorts what was restored, once; call before the first reading. */
    endLoading() {
      isLoading = false;
      all.sort(comparePlaces);
      all.forEach(place);
    },
    /** A part of a page: few of the items, if any, do not pass. */
    matching(filter: RecordFilter) {
      let items: readonly Listed[] = all;
      for (const by of FILTERS) {
        const value = filter[by];
        const list = value === null ? items : (lists[by].get(value) ?? []);
        if (list.length < items.length) items = list;
      }
      return {
        items,
        passes({ context }: Listed) {
          const values = valuesOf(context);
          return FILTERS.every((by) => (filter[by] ?? values[by]) === values[by]);
        },
        placeOf: (record: Listed): ListPlace => record,
        compare: comparePlaces,
      };
    },
  };
}

const FILTERS = ['issuer', 'subject', 'status'] as const;

function valuesOf(context: Attestation | Treaty): Record<keyof RecordFilter, string> {
  const { issuer, subject } = context;
  return { issuer, subject, status: statusOf(context) };
}

export function statusOf({ revokedAt }: Attestation | Treaty): 'active' | 'revoked' {
  return revokedAt === null ? 'active' : 'revoked';
}

function comparePlaces(a: ListPlace, b: ListPlace): number {
  return a.at - b.at || compareCodePoints(a.id, b.id);
}

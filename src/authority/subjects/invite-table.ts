/**
 * Invites of one request have the same roles and labels, which may take several kilobytes: they share them, also after a
 * restart, when invites are read in the order of their ids.
 */
import type { Subject, SubjectTable } from './kinds.ts';

/** How many lists are known at a time: invites of more batches that are read in turn share less. */
const MOST_LISTS = 256;

export function createInviteTable(): SubjectTable<'invite'> {
  return new InviteTable();
}

class InviteTable extends Map<string, Subject<'invite'>> {
  readonly #lists = new Map<string, readonly string[]>();

  override set(id: string, { context, ...subject }: Subject<'invite'>): this {
    const { roles, labels } = context;
    const lists = { roles: this.#shared(roles), ...(labels && { labels: this.#shared(labels) }) };
    return super.set(id, { ...subject, context: { ...context, ...lists } });
  }

  #shared(list: readonly string[]): readonly string[] {
    const text = JSON.stringify(list);
    const known = this.#lists.get(text);
    if (known !== undefined) return known;
    if (this.#lists.size === MOST_LISTS) this.#lists.clear();
    this.#lists.set(text, list);
    return list;
  }
}

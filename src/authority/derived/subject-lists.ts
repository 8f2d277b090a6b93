/** Finds subjects that are listed, selected or counted by more than their ids: the active policy, batches of invites. */

import type { Invite } from '../../../machines/invite.ts';
import type { Subject, SubjectKind } from '../subjects/kinds.ts';
import { SortedTexts } from '../tables/sorted-texts.ts';

/** The active policy version, including decisions that are not committed yet. */
export type PolicyIndex = ReturnType<typeof createPolicyIndex>;

export function createPolicyIndex() {
  let active: string | null = null;
  return {
    follow(kind: SubjectKind, id: string, { value }: Subject) {
      if (kind === 'policy' && value === 'active') active = id;
    },
    activeId: (): string | null => active,
  };
}

/**
 * The invites of each batch, and which of them are unused, including decisions that are not committed yet. The cost of
 * reading or withdrawing a batch does not depend on other invites, and used invites do not slow down a withdrawal.
 */
export type InviteBatches = ReturnType<typeof createInviteBatches>;

/** Sorted ids. Read them before anything else is decided. */
export interface InviteBatch {
  readonly ids: Pick<SortedTexts, 'after' | 'size'>;
  readonly unused: Pick<SortedTexts, 'after' | 'size'>;
}

interface Held {
  readonly ids: SortedTexts;
  readonly unused: SortedTexts;
}

export function createInviteBatches() {
  const batches = new Map<string, Held>();

  function heldAs(batch: string): Held {
    const held = batches.get(batch) ?? { ids: new SortedTexts(), unused: new SortedTexts() };
    batches.set(batch, held);
    return held;
  }

  return {
    follow(kind: SubjectKind, id: string, { value, context }: Subject) {
      const batch = kind === 'invite' ? (context as Invite).batch : undefined;
      if (batch === undefined) return;
      const { ids, unused } = heldAs(batch);
      ids.add(id);
      if (value === 'unused') unused.add(id);
      else unused.delete(id);
    },
    followRemovals(kind: SubjectKind, id: string, { context }: Subject) {
      const batch = kind === 'invite' ? (context as Invite).batch : undefined;
      const held = batch === undefined ? undefined : batches.get(batch);
      if (batch === undefined || held === undefined) return;
      held.ids.delete(id);
      held.unused.delete(id);
      if (held.ids.size === 0) batches.delete(batch);
    },
    /** Undefined if no invite belongs to the batch. */
    find: (batch: string): InviteBatch | undefined => batches.get(batch),
  };
}

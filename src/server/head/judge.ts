/** Decides at startup, from the heads kept elsewhere, whether the state was rolled back [backup-9]. */
import { OlderState } from '../../authority/open.ts';
import type { StateHead } from '../../protocol/records/state-head.ts';
import type { StatePosition } from '../../store/store.ts';

export interface KeptHead {
  readonly path: string;
  /** Null if there is no file. */
  readonly head: StateHead | null;
}

export interface JudgedState {
  readonly position: StatePosition;
  /** The hash of the entry with this number, starting at 1; null if there is none. */
  hashAt(entry: number): Promise<string | null>;
}

/**
 * Throws a one-sentence error if the state may not be served, which is an `OlderState` if it was rolled back. `accepts`
 * means that the operator allows, for this start, a missing head or one from before a restore.
 */
export async function judgeHeads(
  heads: readonly KeptHead[],
  state: JudgedState,
  accepts: boolean,
): Promise<void> {
  for (const kept of heads) await judge(kept, state, accepts);
  if (accepts && !heads.some(isNew(state))) {
    throw new Error(
      '--new-head is for one start only, and there is no new head to accept; remove it',
    );
  }
}

function isNew({ position }: JudgedState) {
  return ({ head }: KeptHead) => head === null || head.epoch < position.epoch;
}

async function judge(
  { path, head }: KeptHead,
  { position, hashAt }: JudgedState,
  accepts: boolean,
): Promise<void> {
  if (head === null) {
    // A state without changes has no older copy.
    if (accepts || position.revision === 0) return;
    throw new Error(
      `The head file ${path} is missing: put it back. Only if the state is certain to be the newest, start once with --new-head`,
    );
  }
  if (head.epoch > position.epoch) {
    throw behind(path, `epoch ${head.epoch}, while the state is at epoch ${position.epoch}`);
  }
  if (head.epoch < position.epoch) {
    if (accepts) return;
    throw new Error(
      `The head file ${path} is from before a restore; start once with --new-head to accept that`,
    );
  }
  if (head.audit_length > position.auditLength || head.revision > position.revision) {
    const [theirs, ours] = [head.revision, position.revision];
    throw behind(path, `revision ${theirs}, while the state ends at ${ours}`);
  }
  const hash = head.audit_length === 0 ? head.audit_head : await hashAt(head.audit_length);
  if (hash === head.audit_head) return;
  throw new Error(
    `The head file ${path} belongs to a different history: audit entry ${head.audit_length} of the state differs`,
  );
}

function behind(path: string, what: string): OlderState {
  return new OlderState(
    `The state is older than the head in ${path}, which recorded ${what}: put the newer state in its place, or restore it with what came later (mesh-na restore)`,
  );
}

/** Decides at startup, from the heads kept elsewhere, whether the state was rolled back [backup-9]. */
import type { StateHead } from '../../protocol/records/state-head.ts';
import type { StatePosition } from '../../store/store.ts';

export type Verdict =
  | { readonly kind: 'serve' }
  /** The state was rolled back: the head has recorded changes that it lacks. */
  | { readonly kind: 'quarantine'; readonly reason: string }
  | { readonly kind: 'refuse'; readonly reason: string };

const SERVE: Verdict = { kind: 'serve' };

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

/** `accepts` means that the operator allows, for this start, a missing head or one from before a restore. */
export async function judgeHeads(
  heads: readonly KeptHead[],
  state: JudgedState,
  accepts: boolean,
): Promise<Verdict> {
  const verdicts: Verdict[] = [];
  for (const kept of heads) verdicts.push(await judge(kept, state, accepts));
  if (accepts && verdicts.every(({ kind }) => kind === 'serve') && !heads.some(isNew(state))) {
    return refuse(
      '--new-head is for one start only, and there is no new head to accept; remove it',
    );
  }
  return (
    verdicts.find(({ kind }) => kind === 'refuse') ??
    verdicts.find(({ kind }) => kind === 'quarantine') ??
    SERVE
  );
}

function isNew({ position }: JudgedState) {
  return ({ head }: KeptHead) => head === null || head.epoch < position.epoch;
}

async function judge(
  { path, head }: KeptHead,
  { position, hashAt }: JudgedState,
  accepts: boolean,
): Promise<Verdict> {
  if (head === null) {
    // A state without changes has no older copy.
    const isFirst = position.revision === 0;
    return accepts || isFirst
      ? SERVE
      : refuse(
          `The head file ${path} is missing: put it back. Only if the state is certain to be the newest, start once with --new-head`,
        );
  }
  if (head.epoch > position.epoch) {
    return behind(path, `epoch ${head.epoch}, while the state is at epoch ${position.epoch}`);
  }
  if (head.epoch < position.epoch) {
    return accepts
      ? SERVE
      : refuse(
          `The head file ${path} is from before a restore; start once with --new-head to accept that`,
        );
  }
  if (head.audit_length > position.auditLength || head.revision > position.revision) {
    const [theirs, ours] = [head.revision, position.revision];
    return behind(path, `revision ${theirs}, while the state ends at ${ours}`);
  }
  const hash = head.audit_length === 0 ? head.audit_head : await hashAt(head.audit_length);
  if (hash === head.audit_head) return SERVE;
  return refuse(
    `The head file ${path} belongs to a different history: audit entry ${head.audit_length} of the state differs`,
  );
}

function behind(path: string, what: string): Verdict {
  const reason = `The state is older than the head in ${path}, which recorded ${what}: restore the state together with the changes since`;
  return { kind: 'quarantine', reason };
}

function refuse(reason: string): Verdict {
  return { kind: 'refuse', reason };
}

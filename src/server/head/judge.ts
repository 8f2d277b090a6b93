/** What a start makes of the heads that were kept elsewhere [backup-9]. */
import type { StateHead } from '../../protocol/records/state-head.ts';
import type { StatePosition } from '../../store/store.ts';

export type Verdict =
  | { readonly kind: 'serve' }
  /** The state was rolled back: it lacks what the head has seen. */
  | { readonly kind: 'quarantine'; readonly reason: string }
  | { readonly kind: 'refuse'; readonly reason: string };

const SERVE: Verdict = { kind: 'serve' };

export interface KeptHead {
  readonly path: string;
  /** Null when there is no file. */
  readonly head: StateHead | null;
}

export interface JudgedState {
  readonly position: StatePosition;
  /** The hash of the entry with this number, from 1; null when there is none. */
  hashAt(entry: number): Promise<string | null>;
}

/** `accepts` is what the operator allows once: a missing head, or one from before a restore. */
export async function judgeHeads(
  heads: readonly KeptHead[],
  state: JudgedState,
  accepts: boolean,
): Promise<Verdict> {
  const verdicts: Verdict[] = [];
  for (const kept of heads) verdicts.push(await judge(kept, state, accepts));
  if (accepts && verdicts.every(({ kind }) => kind === 'serve') && !heads.some(isNew(state))) {
    return refuse('--new-head is for one start, and there is no new head to accept; leave it out');
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
    // There is nothing yet that an older copy would lack.
    const isFirst = position.revision === 0;
    return accepts || isFirst
      ? SERVE
      : refuse(
          `The head file ${path} is missing: put it back; only for a state that is surely the newest, --new-head accepts that once`,
        );
  }
  if (head.epoch > position.epoch) {
    return behind(path, `epoch ${head.epoch}, and the state is of epoch ${position.epoch}`);
  }
  if (head.epoch < position.epoch) {
    return accepts
      ? SERVE
      : refuse(`The head file ${path} is from before a restore; --new-head accepts that once`);
  }
  if (head.audit_length > position.auditLength || head.revision > position.revision) {
    const [theirs, ours] = [head.revision, position.revision];
    return behind(path, `revision ${theirs}, and the state ends at ${ours}`);
  }
  const hash = head.audit_length === 0 ? head.audit_head : await hashAt(head.audit_length);
  if (hash === head.audit_head) return SERVE;
  return refuse(
    `The head file ${path} is of another history: the state has another audit entry ${head.audit_length}`,
  );
}

function behind(path: string, what: string): Verdict {
  const reason = `The state is older than the head in ${path}, which has seen ${what}: restore it with what came later`;
  return { kind: 'quarantine', reason };
}

function refuse(reason: string): Verdict {
  return { kind: 'refuse', reason };
}

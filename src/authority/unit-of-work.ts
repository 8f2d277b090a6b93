/**
 * All that one command decides: next snapshots, spent nonces, audit entries. A command runs to its end
 * without waiting, so no other command sees or disturbs a half-made decision; the unit is then stored
 * in one transaction. When the command is refused, its changes of subjects are dropped, but what the
 * refusal itself leaves behind (audit entries, the nonce of a genuine request) stands.
 */
import { type Emitted, step } from '../../machines/step.ts';
import type { JsonObject } from '../json/value.ts';
import type { SpentNonce, SubjectWrite } from '../store/store.ts';
import type { AuditEvent } from './audit.ts';
import {
  MACHINES,
  type Subject,
  type SubjectKind,
  type Subjects,
  type SubjectTypes,
  toSubject,
} from './subjects.ts';

export interface AuditDraft {
  readonly type: AuditEvent;
  readonly details: JsonObject;
}

export interface UnitOfWork {
  /** The one clock reading of the command, milliseconds since the epoch. */
  readonly at: number;
  /** Sends an event to a subject and stages what becomes of it; returns what the machine emitted. */
  send<Kind extends SubjectKind>(
    kind: Kind,
    id: string,
    event: SubjectTypes[Kind]['event'],
  ): readonly Emitted[];
  /** The subject as this command would leave it. */
  current<Kind extends SubjectKind>(kind: Kind, id: string): Subject<Kind> | undefined;
  audit(type: AuditEvent, details: JsonObject): void;
  spend(nonce: SpentNonce): void;
  /** Runs when the unit is on disk, before the answer leaves. */
  whenCommitted(effect: () => void): void;
  /** Drops the changes of subjects and what was to follow them. */
  refuse(): void;
  readonly isEmpty: boolean;
  readonly writes: readonly SubjectWrite[];
  readonly nonces: readonly SpentNonce[];
  readonly auditDrafts: readonly AuditDraft[];
  readonly effects: readonly (() => void)[];
}

export function beginUnit(subjects: Subjects, at: number): UnitOfWork {
  const staged = new Map<string, SubjectWrite>();
  const nonces: SpentNonce[] = [];
  const auditDrafts: AuditDraft[] = [];
  const effects: (() => void)[] = [];

  function current<Kind extends SubjectKind>(kind: Kind, id: string): Subject<Kind> | undefined {
    const write = staged.size > 0 ? staged.get(`${kind} ${id}`) : undefined;
    return write === undefined ? subjects.current(kind, id) : (toSubject(write) as Subject<Kind>);
  }

  return {
    at,
    current,
    send(kind, id, event) {
      const subject = current(kind, id);
      const { next, emitted, changed } = step(MACHINES[kind], subject, event);
      if (changed) {
        const replaces = subjects.current(kind, id)?.version ?? 0;
        const snapshot = { value: next.value, context: next.context };
        staged.set(`${kind} ${id}`, { kind, id, version: replaces + 1, replaces, snapshot });
      }
      return emitted;
    },
    audit: (type, details) => auditDrafts.push({ type, details }),
    spend: (nonce) => nonces.push(nonce),
    whenCommitted: (effect) => effects.push(effect),
    refuse() {
      staged.clear();
      effects.length = 0;
    },
    get isEmpty() {
      return staged.size === 0 && nonces.length === 0 && auditDrafts.length === 0;
    },
    get writes() {
      return [...staged.values()];
    },
    nonces,
    auditDrafts,
    effects,
  };
}

/** The facts of a subject that is known to exist, because it just took an event. */
export function existing<Kind extends SubjectKind>(
  unit: UnitOfWork,
  kind: Kind,
  id: string,
): SubjectTypes[Kind]['context'] {
  const subject = unit.current(kind, id);
  if (subject === undefined) throw new Error(`${kind} ${id} does not exist`);
  return subject.context;
}

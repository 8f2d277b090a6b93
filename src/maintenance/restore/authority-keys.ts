/** The keys of the authority after a restore: those in the backup, and the successions that came after it [backup-6]. */
import type { AuthorityKeyEvent } from '../../../machines/authority-key.ts';
import { transition } from '../../authority/subjects/kinds.ts';
import { SHA256 } from '../../base/crypto/digest.ts';
import {
  type AuthoritySuccession,
  successionDigest,
} from '../../protocol/records/authority-succession.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { StoredSubject } from '../../store/store.ts';

const KIND = 'authority-key';

/**
 * The statements in force that the backup lacks. Throws a one-sentence error if both have a statement with the same
 * number but different contents.
 */
export function laterSuccessions(
  stored: readonly AuthoritySuccession[],
  known: readonly AuthoritySuccession[],
): readonly AuthoritySuccession[] {
  const digest = (statement: AuthoritySuccession) => successionDigest(statement, SHA256);
  const fork = stored.findIndex((statement, index) => {
    const other = known[index];
    return other !== undefined && digest(other) !== digest(statement);
  });
  if (fork === -1) return known.slice(stored.length);
  throw new Error(
    `Succession ${fork + 1} in the backup is not the one in the given chain: the root key has signed two histories, so find out which one the network follows`,
  );
}

export interface LaterKeys {
  /** The keys in the backup. */
  readonly stored: readonly StoredSubject[];
  readonly successions: readonly AuthoritySuccession[];
  /** The genesis block in the backup. */
  readonly before: GenesisBlock;
  /** The genesis block in force. */
  readonly genesis: GenesisBlock;
  /** The sequence of the first revocation list after the restore. */
  readonly crlSequence: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** All keys as they are after the restore. */
export function restoredKeys(later: LaterKeys): readonly StoredSubject[] {
  const { stored, successions, before, genesis, crlSequence, at } = later;
  if (successions.length === 0) return stored;
  const keys = new Map(stored.map((subject) => [subject.id, subject]));

  function send(publicKey: string, event: AuthorityKeyEvent): void {
    const subject = keys.get(publicKey);
    const { next, changed } = transition(KIND, subject?.snapshot, event);
    if (!changed) {
      throw new Error(`The key ${publicKey} in the backup does not fit the given successions`);
    }
    const version = (subject?.version ?? 0) + 1;
    keys.set(publicKey, { kind: KIND, id: publicKey, version, snapshot: next });
  }

  function inState(value: string): StoredSubject | undefined {
    return [...keys.values()].find(({ snapshot }) => snapshot.value === value);
  }

  function endOverlap(ended: number): void {
    const previous = inState('previous');
    if (previous === undefined) return;
    send(previous.id, { type: 'finish', at: ended, behind: null, despite: 0 });
    const current = inState('current');
    if (current !== undefined) send(current.id, { type: 'settle' });
  }

  function takeOver(
    statement: AuthoritySuccession,
    kind: 'planned' | 'compromise',
    rollBack: AuthoritySuccession | undefined,
    firstList: number,
  ): void {
    const { from_key, to_key } = statement;
    const since = instantOf(statement.activates_at);
    const staged = inState('staged');
    // A staged succession could still be withdrawn when the backup was made.
    if (staged !== undefined && staged.id !== to_key) keys.delete(staged.id);
    if (staged?.id !== to_key) {
      const back = rollBack === undefined ? null : { statement: rollBack, genesis };
      const order = { isOtherStaged: false, problem: null };
      send(to_key, { type: 'stage', statement, genesis, rollBack: back, ...order });
    }
    endOverlap(since);
    const due = { isDue: true, isHeld: true };
    send(to_key, { type: 'activate', at: since, crlSequence: firstList, ...due });
    send(from_key, { type: 'replace', at: since, kind });
  }

  if (keys.size === 0) {
    send(before.network_authority.public_key, { type: 'found', genesis: before });
  }
  for (const [index, statement] of successions.entries()) {
    // No list between the backup and the restore is known, so only the order of these numbers matters.
    const firstList = crlSequence - (successions.length - 1 - index);
    const { kind, from_key, to_key } = statement;
    if (kind === 'roll_back') {
      const began = instantOf(statement.activates_at);
      const possible = { isRolledBack: false, isOver: false, isHeld: true };
      send(from_key, { type: 'roll_back', at: began, crlSequence: firstList, ...possible });
      send(to_key, { type: 'return' });
      continue;
    }
    const next = successions[index + 1];
    takeOver(statement, kind, next?.kind === 'roll_back' ? next : undefined, firstList);
  }
  const last = successions.at(-1);
  if (last !== undefined && instantOf(last.overlap_until) <= at) {
    endOverlap(instantOf(last.overlap_until));
  }
  return [...keys.values()];
}

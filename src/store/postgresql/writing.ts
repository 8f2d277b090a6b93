/**
 * The one connection through which this process changes the state: one change after the other, in the order in
 * which they were asked for.
 *
 * A change whose outcome is unknown, because the connection was lost before its answer came, may be stored or
 * not. Reporting it as not stored would let its sender repeat what has happened, and continuing would build on
 * state that may not exist. So nothing is taken after it: the process has to end, and the next start reads
 * what is stored. A connection that is lost between two changes is replaced, since every change names the
 * lease and the totals that it rests on.
 *
 * A change that a slow database has not answered is waited for, while renewals of the lease, which wait for the same disks
 * and standbys, are late as well. Where those go on, the connection is at fault, and nothing would ever end the wait.
 */

import type { Client, QueryResultRow } from 'pg';
import { messageOf } from '../../base/error-message.ts';
import { createTurns } from '../../base/work.ts';
import { disconnect } from './connect.ts';
import type { Lease } from './lease.ts';
import type { LeaseClock } from './lease-clock.ts';
import { readingProblem } from './unreadable.ts';

/** Raised by the functions of the schema. */
const CHANGED_SUBJECT = 'MN003';

/** A subject has another stored version than a batch rests on: nothing of the batch is stored. */
export class ChangedSubject extends Error {}

export interface Writing {
  /** Runs the work when all earlier work has ended. */
  inTurn<T>(work: (session: Session) => Promise<T>): Promise<T>;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
  /** Null until a change has failed; then why nothing is taken any more. */
  failure(): string | null;
  fail(cause: unknown): void;
  end(): Promise<void>;
}

/** The database prepares it once for each connection, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** For rows that are lists of their columns. */
  readonly rowMode?: 'array';
}

export interface Question extends Statement {
  /** What it reads, as `DamagedState` names it. */
  readonly table: string;
}

/** Each statement is a transaction of its own. */
export interface Session {
  change(statement: Statement, values: readonly unknown[]): Promise<void>;
  /**
   * Changes nothing, so it is asked again when the connection is lost meanwhile, and changes go on after one that the
   * database cannot answer. Rejects with `DamagedState` when that is because of the files of the table.
   */
  read<Row extends QueryResultRow>(
    question: Question,
    values: readonly unknown[],
  ): Promise<readonly Row[]>;
}

export interface WritingOptions {
  readonly client: Client;
  readonly clock: LeaseClock;
  /** Replaces a connection that was lost; rejects when that cannot be, or once another may write. */
  connect(): Promise<Client>;
  readonly lease: Pick<Lease, 'isHeld' | 'isOwned' | 'noteHeld'>;
  /** How long the lease lasts, and an answer may take while it is renewed, in milliseconds. */
  readonly leaseMs: number;
  /** Called when an answer takes longer, or the connection cannot be replaced: the process has to end. */
  gaveUp(problem: string): void;
}

/** The function of the server that gives the warning. */
const WAITS_FOR_STANDBYS = 'SyncRepWaitForLSN';

const UNANSWERED = 'The database renews the lease, and has not answered a statement';
const CAUSE =
  'what is between it and this process, such as a firewall or a pooler, passes nothing on';

/** Whether the database has refused the statement itself, on a connection that goes on. */
function isOfStatement(cause: unknown): boolean {
  return (cause as { severity?: string }).severity === 'ERROR';
}

export function createWriting(options: WritingOptions): Writing {
  const { client: first, clock, lease, leaseMs } = options;
  let client = first;
  let isLost = false;
  let failure: string | null = null;
  const turns = createTurns();
  watch(first);

  /** PostgreSQL only warns when it stops waiting for the standbys that a commit has to reach, in any language. */
  function watch(watched: Client): void {
    const lost = () => {
      if (watched === client) isLost = true;
    };
    watched.on('error', lost).on('end', lost);
    watched.on('notice', ({ routine, message = 'a warning without text' }) => {
      if (routine === WAITS_FOR_STANDBYS) failure ??= message;
    });
  }

  async function connected(): Promise<Client> {
    if (!isLost) return client;
    try {
      client = await options.connect();
    } catch (cause) {
      throw gaveUp(messageOf(cause));
    }
    isLost = false;
    watch(client);
    return client;
  }

  async function send<Row extends QueryResultRow>(
    statement: Statement,
    values: readonly unknown[],
  ) {
    if (failure !== null) throw new Error(failure);
    const current = await connected();
    const { rows } = await answered(current.query<Row>({ ...statement, values: [...values] }));
    if (failure !== null) throw new Error(failure);
    return rows;
  }

  /** The answer, unless none comes for as long as the lease lasts while that is renewed. */
  async function answered<T>(answer: Promise<T>): Promise<T> {
    let isOver = false;
    let cancel: () => void = () => undefined;
    const missed = new Promise<never>((_resolve, reject) => {
      function look(): void {
        if (isOver) return;
        if (lease.isHeld()) reject(gaveUp(`${UNANSWERED} for ${leaseMs / 1000} s: ${CAUSE}`));
        else wait();
      }
      function wait(): void {
        // What has arrived while this process stood still is read before.
        cancel = clock.after(leaseMs, () => setImmediate(look));
      }
      wait();
    });
    try {
      return await Promise.race([answer, missed]);
    } finally {
      isOver = true;
      cancel();
    }
  }

  function gaveUp(problem: string): Error {
    fail(problem);
    options.gaveUp(problem);
    return new Error(problem);
  }

  const session: Session = {
    async change(statement, values) {
      try {
        const sentAt = clock.elapsed();
        await send(statement, values);
        lease.noteHeld(sentAt);
      } catch (cause) {
        if ((cause as { code?: string }).code === CHANGED_SUBJECT) throw new ChangedSubject();
        fail(cause);
        throw cause;
      }
    },
    async read<Row extends QueryResultRow>(
      { table, ...statement }: Question,
      values: readonly unknown[],
    ) {
      for (;;) {
        try {
          return await send<Row>(statement, values);
        } catch (cause) {
          if (isOfStatement(cause)) throw readingProblem(table, cause);
          if (failure !== null || !lease.isOwned()) {
            fail(cause);
            throw cause;
          }
          isLost = true;
          void disconnect(client);
        }
      }
    },
  };

  function fail(cause: unknown): void {
    failure ??= messageOf(cause);
  }

  return {
    inTurn: (work) => turns.run(() => work(session)),
    idle: turns.idle,
    failure: () => failure,
    fail,
    end: () => disconnect(client),
  };
}

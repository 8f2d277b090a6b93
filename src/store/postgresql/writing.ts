/**
 * The one connection through which this process changes the state, one change after another in the order requested.
 *
 * If the connection is lost before a change is answered, its outcome is unknown. Reporting it as not stored would let
 * its sender repeat what has happened, and continuing would build on state that may not exist. So nothing is accepted
 * after it: the process has to end, and the next start reads what is stored. A connection that is lost between two
 * changes is replaced, because every change names the lease and the totals on which it depends.
 *
 * If a slow database has not answered a change, this process waits as long as renewals of the lease, which need the
 * same disks and standbys, are late as well. If renewals succeed, the database is asked whether it still works on the
 * statement, which may wait for the lock of another session. If not, the connection is at fault, and the wait would
 * never end.
 */

import type { Client, QueryResultRow } from 'pg';
import { messageOf } from '../../base/error-message.ts';
import { createTurns } from '../../base/work.ts';
import type { LeaseClock } from './clocks.ts';
import { onCanceledWait } from './commit.ts';
import { disconnect, isOfStatement, isTimeout, readingProblem } from './connect.ts';
import type { Lease } from './lease.ts';

/** Raised by the functions of the schema. */
const CHANGED_SUBJECT = 'MN003';

/** A subject has a stored version other than the one that a batch requires. Nothing of the batch is stored. */
export class ChangedSubject extends Error {}

export type Writing = ReturnType<typeof createWriting>;

/** A statement that the database prepares once per connection, under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** Set to get each row as a list of its columns. */
  readonly rowMode?: 'array';
}

export interface Question extends Statement {
  /** The table that it reads, for the message of `DamagedState`. */
  readonly table: string;
}

/** Each statement runs in its own transaction. */
export interface Session {
  change(statement: Statement, values: readonly unknown[]): Promise<void>;
  /**
   * Reads rows. Since this changes nothing, it is repeated if the connection is lost, and changes continue even if the
   * database cannot answer it. Rejects with `DamagedState` if the files of the table cannot be read.
   */
  read<Row extends QueryResultRow>(
    question: Question,
    values: readonly unknown[],
  ): Promise<readonly Row[]>;
}

export interface WritingOptions {
  readonly client: Client;
  readonly clock: LeaseClock;
  /** Replaces a lost connection; rejects if that is impossible, or once another process may write. */
  connect(): Promise<Client>;
  readonly lease: Pick<Lease, 'isHeld' | 'isOwned' | 'noteHeld'>;
  /** How long the lease lasts, in milliseconds; after this time without an answer, the database is asked. */
  readonly leaseMs: number;
  /**
   * What the database does for the session with this process id, as a sentence; null if it does nothing. Uses another
   * connection.
   */
  running(processId: number): Promise<string | null>;
  /** Called once for each reason why an answer takes longer. */
  delayed(reason: string): void;
  /** Called if an answer cannot come any more, or if the connection cannot be replaced: the process has to end. */
  gaveUp(problem: string): void;
}

const UNANSWERED = 'The database renews the lease, and has not answered a statement';
const CAUSE =
  'what is between it and this process, such as a firewall or a pooler, passes nothing on';

export function createWriting(options: WritingOptions) {
  const { client: first, clock, lease, leaseMs } = options;
  let client = first;
  let isLost = false;
  let failure: string | null = null;
  const turns = createTurns();
  watch(first);

  function watch(watched: Client): void {
    const lost = () => {
      if (watched === client) isLost = true;
    };
    watched.on('error', lost).on('end', lost);
    onCanceledWait(watched, fail);
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
    const answer = current.query<Row>({ ...statement, values: [...values] });
    const { rows } = await answered(current, answer);
    if (failure !== null) throw new Error(failure);
    return rows;
  }

  /** Waits for the answer. Gives up if the lease is being renewed, and the database does not work on the statement. */
  async function answered<T>(current: Client, answer: Promise<T>): Promise<T> {
    let isOver = false;
    let known: string | null = null;
    let cancel: () => void = () => undefined;
    const missed = new Promise<never>((_resolve, reject) => {
      async function look(): Promise<void> {
        if (isOver) return;
        const reason = lease.isHeld() ? await running(current).catch(() => null) : known;
        if (isOver) return;
        if (reason === null && lease.isHeld()) {
          reject(gaveUp(`${UNANSWERED} for ${leaseMs / 1000} s: ${CAUSE}`));
          return;
        }
        if (reason !== null && reason !== known) options.delayed(reason);
        known = reason;
        wait();
      }
      function wait(): void {
        // Data that arrived while this process was suspended is read first.
        cancel = clock.after(leaseMs, () => setImmediate(() => void look()));
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

  /** The type of a client lacks the process id, which the server sends with a new connection. */
  function running(current: Client): Promise<string | null> {
    return options.running((current as Client & { readonly processID: number }).processID);
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
    /** Runs the work after all earlier work has ended. */
    inTurn: <T>(work: (session: Session) => Promise<T>): Promise<T> =>
      turns.run(() => work(session)),
    /** Resolves when no work is in progress. */
    idle: turns.idle,
    /** Null until a change has failed; then the reason why nothing is accepted any more. */
    failure: (): string | null => failure,
    fail,
    end: () => disconnect(client),
  };
}

/**
 * A connection for reads while a service runs. It is not the one for changes, because a read that waits for the lock of
 * another session would delay them: it is given up instead, alone. `connect` opens a connection whose statements wait for
 * a lock or an answer only for a limited time.
 */
export function createReading(connect: () => Promise<Client>) {
  let client: Client | null = null;
  const turns = createTurns();

  async function end(): Promise<void> {
    const ended = client;
    client = null;
    if (ended !== null) await disconnect(ended);
  }

  const read: Session['read'] = ({ table, ...statement }, values) =>
    turns.run(async () => {
      for (;;) {
        const isNew = client === null;
        client ??= await connect();
        try {
          return (await client.query({ ...statement, values: [...values] })).rows;
        } catch (cause) {
          if (!isOfStatement(cause)) await end();
          if (isTimeout(cause))
            throw new Error(`Table ${table} is locked, or slow: ${cause.message}`);
          if (isNew || isOfStatement(cause)) throw readingProblem(table, cause);
        }
      }
    });

  return { read, end };
}

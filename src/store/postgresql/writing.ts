/**
 * The one connection through which this process changes the state: one change after the other, in the order in
 * which they were asked for.
 *
 * A change whose outcome is unknown, because the connection was lost before its answer came, may be stored or
 * not. Reporting it as not stored would let its sender repeat what has happened, and continuing would build on
 * state that may not exist. So nothing is taken after it: the process has to end, and the next start reads
 * what is stored. A connection that is lost between two changes is replaced, since every change names the
 * lease and the totals that it rests on.
 */
import type { Client, QueryResultRow } from 'pg';
import { disconnect } from './connect.ts';
import type { LeaseClock } from './lease.ts';
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
  connect(): Promise<Client>;
  /** A change has succeeded that was sent at this monotonic time, and that only the holder of the lease can make. */
  changed(sentAt: number): void;
  /** False once another may write: a lost connection is not replaced then. */
  isOwned(): boolean;
}

/** The function of the server that gives the warning. */
const WAITS_FOR_STANDBYS = 'SyncRepWaitForLSN';
/** Between attempts to replace a lost connection, milliseconds. */
const RECONNECT_MS = 100;

/** Whether the database has refused the statement itself, on a connection that goes on. */
function isOfStatement(cause: unknown): boolean {
  return (cause as { severity?: string }).severity === 'ERROR';
}

export function createWriting(options: WritingOptions): Writing {
  const { client: first, clock, connect, isOwned } = options;
  let client = first;
  let isLost = false;
  let failure: string | null = null;
  let last: Promise<unknown> = Promise.resolve();
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

  /** Nothing was sent yet: waiting for the database is safe for as long as nobody else may write. */
  async function connected(): Promise<Client> {
    while (isLost) {
      try {
        client = await connect();
        isLost = false;
        watch(client);
      } catch (cause) {
        if (!isOwned()) throw cause;
        await new Promise<void>((resolve) => void clock.after(RECONNECT_MS, resolve));
      }
    }
    return client;
  }

  async function send<Row extends QueryResultRow>(
    statement: Statement,
    values: readonly unknown[],
  ) {
    if (failure !== null) throw new Error(failure);
    const current = await connected();
    const { rows } = await current.query<Row>({ ...statement, values: [...values] });
    if (failure !== null) throw new Error(failure);
    return rows;
  }

  const session: Session = {
    async change(statement, values) {
      try {
        const sentAt = clock.elapsed();
        await send(statement, values);
        options.changed(sentAt);
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
          if (failure !== null || !isOwned()) {
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
    failure ??= cause instanceof Error ? cause.message : String(cause);
  }

  return {
    inTurn(work) {
      const done = last.then(() => work(session));
      last = done.catch(() => undefined);
      return done;
    },
    async idle() {
      await last;
    },
    failure: () => failure,
    fail,
    end: () => disconnect(client),
  };
}

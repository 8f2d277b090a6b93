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
import type { Client, QueryResult, QueryResultRow } from 'pg';

/** Raised by the functions of the schema. */
const CHANGED_SUBJECT = 'MN003';

/** A subject has another stored version than a batch rests on: nothing of the batch is stored. */
export class ChangedSubject extends Error {}

export interface Writing {
  /** Runs the work when all earlier work has ended. */
  inTurn<T>(work: (run: Run) => Promise<T>): Promise<T>;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
  /** Null until a change has failed; then why nothing is taken any more. */
  failure(): string | null;
  fail(cause: unknown): void;
  end(): Promise<void>;
}

/** Runs one statement, which is one transaction. */
export type Run = <Row extends QueryResultRow>(
  statement: string,
  values: readonly unknown[],
) => Promise<QueryResult<Row>>;

export function createWriting(first: Client, connect: () => Promise<Client>): Writing {
  let client = first;
  let isLost = false;
  let failure: string | null = null;
  let last: Promise<unknown> = Promise.resolve();
  watch(first);

  /** PostgreSQL only warns when it stops waiting for the standbys that a commit has to reach. */
  function watch(watched: Client): void {
    watched.on('end', () => {
      if (watched === client) isLost = true;
    });
    watched.on('notice', ({ severity, message = 'a warning without text' }) => {
      if (severity === 'WARNING') failure ??= message;
    });
  }

  async function connected(): Promise<Client> {
    if (!isLost) return client;
    client = await connect();
    isLost = false;
    watch(client);
    return client;
  }

  const run: Run = async (statement, values) => {
    if (failure !== null) throw new Error(failure);
    try {
      const current = await connected();
      const result = await current.query({
        name: statement,
        text: statement,
        values: [...values],
      });
      if (failure !== null) throw new Error(failure);
      return result as never;
    } catch (cause) {
      if ((cause as { code?: string }).code === CHANGED_SUBJECT) throw new ChangedSubject();
      fail(cause);
      throw cause;
    }
  };

  function fail(cause: unknown): void {
    failure ??= cause instanceof Error ? cause.message : String(cause);
  }

  return {
    inTurn(work) {
      const done = last.then(() => work(run));
      last = done.catch(() => undefined);
      return done;
    },
    async idle() {
      await last;
    },
    failure: () => failure,
    fail,
    end: () => client.end(),
  };
}

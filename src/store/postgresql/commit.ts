/** Commits outside of a service. Like its own, each is done only once it is where the database promises to keep it. */
import type { Client } from 'pg';

/** What a warning of the server contains. */
interface Notice {
  readonly routine?: string | undefined;
  readonly message?: string | undefined;
}

/** The server function that issues the warning. */
const WAITS_FOR_STANDBYS = 'SyncRepWaitForLSN';

/** A change is visible, but the database has stopped waiting for the standbys that it must reach. */
export class NotReplicated extends Error {}

/**
 * PostgreSQL only issues a warning, in any language, when it stops waiting for the standbys that a commit must reach.
 * Returns a function that ends the watch.
 */
export function onCanceledWait(
  client: Client,
  canceled: (problem: NotReplicated) => void,
): () => void {
  const look = ({ routine, message = 'a warning without text' }: Notice) => {
    if (routine === WAITS_FOR_STANDBYS) canceled(new NotReplicated(message));
  };
  client.on('notice', look);
  return () => client.off('notice', look);
}

/** Ends the transaction. Rejects with `NotReplicated` if it is visible, but not on the standbys. */
export async function commit(client: Client): Promise<void> {
  let problem: string | null = null;
  const end = onCanceledWait(client, ({ message }) => {
    problem = message;
  });
  try {
    await client.query('select mesh_na.commit_durably()');
    await client.query('commit');
  } finally {
    end();
  }
  if (problem !== null) throw new NotReplicated(`${UNSAFE} (${problem})${AGAIN}`);
}

const UNSAFE = 'The database has stopped waiting for its standby, which may lack the change';
const AGAIN = '; repeat the command when the standby is connected';

/** Runs the work in one transaction, and commits it like `commit`. */
export async function inTransaction<T>(client: Client, work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    const done = await work();
    await commit(client);
    return done;
  } catch (cause) {
    await client.query('rollback').catch(() => undefined);
    throw cause;
  }
}

/**
 * Resolves once everything that is visible is on the standbys as well, which store commits in order: it may be visible
 * only because another process has stopped waiting for them.
 */
export function awaitStandbys(client: Client): Promise<void> {
  return inTransaction(client, async () => {
    await client.query(`select pg_logical_emit_message(true, 'mesh_na', '')`);
  });
}

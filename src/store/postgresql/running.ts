/** Whether the database still works on a statement whose answer has not arrived. */
import type { Client } from 'pg';
import { SESSION_NAME } from './session-name.ts';

interface Running {
  /** The table whose lock the statement waits for; null if it waits for none. */
  readonly table: string | null;
  readonly blockers: string | null;
}

/** By process id. A pooler's ids mean nothing to the database, so the session must be one of ours. */
const RUNNING = `
  select
    (select l.relation::regclass::text from pg_locks as l
      where l.pid = s.pid and not l.granted limit 1) as table,
    (select string_agg(format('session %s (%s, user %s)', b.pid, b.application_name, b.usename), ', ')
      from pg_stat_activity as b where b.pid = any (pg_blocking_pids(s.pid))) as blockers
  from pg_stat_activity as s
  where s.pid = $1 and s.state = 'active' and s.application_name = '${SESSION_NAME}'
`;

/** What the database does for the session with this process id, as a sentence; null if it does nothing. */
export async function runningFor(asked: Client, processId: number): Promise<string | null> {
  const { rows } = await asked.query<Running>(RUNNING, [processId]);
  const running = rows[0];
  if (running === undefined) return null;
  const { table, blockers } = running;
  if (blockers === null) return 'The database is still working on a statement';
  return `A statement waits for the lock on ${table ?? 'rows'} that ${blockers} has; it goes on when that ends`;
}

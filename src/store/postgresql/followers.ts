/** The instances that keep the state of a database ready, as the database itself knows them. */
import type { Client } from 'pg';
import { FOLLOWER_NAMES, type NamedFollower, readFollowerSession } from './session-name.ts';

export interface FollowerSession extends NamedFollower {
  readonly silent_seconds: number | null;
}

/** Those whose sessions the database knows: one whose machine is gone may be among them for a while. */
export async function readFollowers(client: Client): Promise<FollowerSession[]> {
  const { rows } = await client.query<{ name: string; silent: number | null }>(
    `select application_name as name,
        extract(epoch from clock_timestamp() - state_change)::float8 as silent
      from pg_stat_activity
      where datname = current_database() and application_name like $1
      order by backend_start, pid`,
    [FOLLOWER_NAMES],
  );
  return rows.flatMap(({ name, silent }) => {
    const follower = readFollowerSession(name);
    return follower === null ? [] : [{ ...follower, silent_seconds: silent }];
  });
}

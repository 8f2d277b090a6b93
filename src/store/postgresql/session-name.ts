/**
 * The names of this program's sessions, as shown in `pg_stat_activity`. Followers add their own name and the revision
 * they have read, so that the database alone shows how far behind each one is. PostgreSQL keeps 63 bytes.
 */
import type { Client } from 'pg';

export const SESSION_NAME = 'mesh-na';

const FOLLOWER = `${SESSION_NAME} follower`;

/** A `like` pattern for the names of followers. */
export const FOLLOWER_NAMES = `${FOLLOWER}%`;

export interface NamedFollower {
  /** The name of the follower, such as `pid 12 on host`; its end may be missing. */
  readonly name: string;
  /** Null until it has read a revision. */
  readonly revision: number | null;
}

export function followerSession({ name, revision }: NamedFollower): string {
  return revision === null ? `${FOLLOWER}: ${name}` : `${FOLLOWER}@${revision}: ${name}`;
}

/** Null if the session does not belong to a follower. */
export function readFollowerSession(sessionName: string): NamedFollower | null {
  if (!sessionName.startsWith(FOLLOWER)) return null;
  const [, revision, name] =
    /^(?:@(\d{1,15}))?: (.*)$/s.exec(sessionName.slice(FOLLOWER.length)) ?? [];
  if (name === undefined) return null;
  return { name, revision: revision === undefined ? null : Number(revision) };
}

export interface FollowerSession extends NamedFollower {
  readonly silent_seconds: number | null;
}

/** Lists the followers' sessions known to the database; for a while, these may include sessions of a lost machine. */
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

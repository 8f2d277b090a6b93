/**
 * How sessions of this program call themselves, for anyone who looks at `pg_stat_activity`. Followers add who they are and
 * which revision they have read: so the database alone shows how far behind each one is. PostgreSQL keeps 63 bytes.
 */
import type { Client } from 'pg';

export const SESSION_NAME = 'mesh-na';

const FOLLOWER = `${SESSION_NAME} follower`;

/** A pattern of `like` for the names of followers. */
export const FOLLOWER_NAMES = `${FOLLOWER}%`;

export interface NamedFollower {
  /** What it calls itself, such as `pid 12 on host`; the end may be missing. */
  readonly name: string;
  /** Null while it has read none. */
  readonly revision: number | null;
}

export function followerSession({ name, revision }: NamedFollower): string {
  return revision === null ? `${FOLLOWER}: ${name}` : `${FOLLOWER}@${revision}: ${name}`;
}

/** Null when the session is none of a follower. */
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

/** Lists the sessions known to the database; a lost machine may be among them for a while. */
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

/** What a database guarantees when it acknowledges a commit. */
import type { Client } from 'pg';

export interface Durability {
  readonly server: string;
  readonly synchronous_commit: string;
  readonly synchronous_standby_names: string;
  /** A sentence that says what "acknowledged" means. */
  readonly meaning: string;
}

/** Must be called on the writing connection, because some settings differ between connections. */
export async function readDurability(client: Client): Promise<Durability> {
  const { rows } = await client.query<Omit<Durability, 'meaning'>>(`
    select current_setting('server_version') as server,
      current_setting('synchronous_commit') as synchronous_commit,
      current_setting('synchronous_standby_names') as synchronous_standby_names
  `);
  const found = rows[0];
  if (found === undefined) throw new Error('The database does not show its settings');
  return { ...found, meaning: meaningOf(found) };
}

const ON_STANDBYS: { readonly [level: string]: string } = {
  remote_write: 'and received by the standbys that it names, which may lose it with their machines',
  on: 'and on the disks of the standbys that it names',
  remote_apply: 'and on the disks of the standbys that it names, where it can be read',
};

function meaningOf(found: Omit<Durability, 'meaning'>): string {
  const { synchronous_commit: level, synchronous_standby_names: names } = found;
  const onStandbys = names === '' ? undefined : ON_STANDBYS[level];
  return onStandbys === undefined
    ? 'An acknowledged change is on the disk of the one database server, and lost with that disk'
    : `An acknowledged change is on the disk of the database server, ${onStandbys} (${names})`;
}

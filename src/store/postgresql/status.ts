/** What there is to know about a database from outside, also while a service uses it. */
import type { Client } from 'pg';
import { metaValue } from '../meta-rows.ts';
import type { StoreAddress } from './address.ts';
import { onPrimary } from './connect.ts';
import { type Durability, readDurability } from './durability.ts';
import { leaseIsMissing } from './lease-table.ts';
import { createTables, readSchemaVersion, SCHEMA_VERSION } from './schema.ts';
import { readFollowers } from './session-name.ts';
import { readMetaOf } from './tables.ts';

export interface StoreStatus {
  /** Host, port and database. */
  readonly place: string;
  readonly durability: Durability;
  /** 0 when there are no tables. */
  readonly schemaVersion: number;
  /** Null unless the tables are those of this program. */
  readonly contents: StatusOfContents | null;
}

interface StatusOfContents {
  /** Null until a service has used the database. */
  readonly networkName: string | null;
  readonly revision: number;
  readonly rows: { readonly [table: string]: number };
  readonly lease: StatusOfLease;
  /** Instances that keep the state ready, to take the place of the writer. */
  readonly followers: readonly StatusOfFollower[];
}

export interface StatusOfLease {
  readonly epoch: number;
  /** Null when nobody has held it yet. */
  readonly holder: string | null;
  readonly expires_at: string | null;
  readonly released: boolean;
  /** Where the holder takes the calls of other instances; null when it takes none. */
  readonly link: string | null;
  readonly held: boolean;
  /** How long it lasts without a renewal; null while nobody holds it. */
  readonly remaining_seconds: number | null;
}

export interface StatusOfFollower {
  /** What it calls itself; long names lack their end. */
  readonly name: string;
  /** How many revisions it had not read; null while it has not read the state. */
  readonly lag_revisions: number | null;
  /** Since it has last asked the database for anything; null for a user who may not know that. */
  readonly silent_seconds: number | null;
}

export async function readStatus(address: StoreAddress): Promise<StoreStatus> {
  return onPrimary(address, async (client, place) => {
    const schemaVersion = await readSchemaVersion(client);
    return {
      place,
      durability: await readDurability(client),
      schemaVersion,
      contents: schemaVersion === SCHEMA_VERSION ? await readStatusOfContents(client) : null,
    };
  });
}

/** Settings without which an acknowledged change may be lost or torn; the rest is refused when connecting. */
export interface Safety {
  readonly place: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly synchronous_standby_names: string;
  /** Who writes to it now; null when nobody does. */
  readonly writer: string | null;
}

export async function readSafety(address: StoreAddress): Promise<Safety> {
  return onPrimary(address, async (client, place) => {
    const { rows } = await client.query<Omit<Safety, 'place' | 'writer'>>(`
      select current_setting('full_page_writes') as full_page_writes,
        current_setting('synchronous_commit') as synchronous_commit,
        current_setting('synchronous_standby_names') as synchronous_standby_names
    `);
    if (rows[0] === undefined) throw new Error('The database does not show its settings');
    const hasTables = (await readSchemaVersion(client)) === SCHEMA_VERSION;
    const lease = hasTables ? await readLease(client) : null;
    return { place, writer: lease?.held === true ? lease.holder : null, ...rows[0] };
  });
}

/** Makes the tables, or brings them to the version of this program. */
export async function migrateDatabase(address: StoreAddress) {
  return onPrimary(address, async (client, place) => {
    const from = await createTables(client, place);
    return { place, from, to: SCHEMA_VERSION };
  });
}

async function readStatusOfContents(client: Client): Promise<StatusOfContents> {
  // Before the revision: none of them seems to have read more than it has.
  const sessions = await readFollowers(client);
  const meta = await readMetaOf(client);
  const { revision } = metaValue(meta, 'totals');
  return {
    networkName: metaValue(meta, 'network')?.network_name ?? null,
    revision,
    rows: await countRows(client),
    lease: await readLease(client),
    followers: sessions.map(({ name, revision: read, silent_seconds }) => ({
      name,
      lag_revisions: read === null ? null : Math.max(0, revision - read),
      silent_seconds,
    })),
  };
}

async function countRows(client: Client): Promise<StatusOfContents['rows']> {
  const counts = ['subjects', 'nonces', 'audit', 'liveness'].map(
    (table) => `(select count(*) from mesh_na.${table})::int as ${table}`,
  );
  const { rows } = await client.query<{ [table: string]: number }>(`select ${counts.join(', ')}`);
  return rows[0] ?? {};
}

async function readLease(client: Client): Promise<StatusOfLease> {
  const { rows } = await client.query<StatusOfLease>(`
    select epoch::int, holder_name as holder, released, link,
      case when epoch > 0 then to_char(expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') end
        as expires_at,
      not released and expires_at > clock_timestamp() as held,
      case when not released and expires_at > clock_timestamp()
        then extract(epoch from expires_at - clock_timestamp())::float8 end as remaining_seconds
    from mesh_na.writer_lease
  `);
  if (rows[0] === undefined) throw leaseIsMissing();
  return rows[0];
}

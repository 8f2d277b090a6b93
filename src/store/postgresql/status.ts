/** Reads the status of a database, even while a service uses it. */
import type { Client } from 'pg';
import { metaValue } from '../meta-rows.ts';
import type { StoreAddress } from './address.ts';
import { onPrimary } from './connect.ts';
import { KEPT_SECONDS, readInstances } from './instances.ts';
import { leaseIsMissing } from './lease-table.ts';
import { createTables, readSchemaVersion, SCHEMA_VERSION } from './schema.ts';
import { readMetaOf } from './tables.ts';

export interface StoreStatus {
  /** Host, port and database. */
  readonly place: string;
  readonly durability: Durability;
  /** 0 if there are no tables. */
  readonly schemaVersion: number;
  /** Null unless the tables have the version of this program. */
  readonly contents: StatusOfContents | null;
}

interface StatusOfContents {
  /** Null until a service has used the database. */
  readonly networkName: string | null;
  readonly revision: number;
  readonly rows: { readonly [table: string]: number };
  readonly lease: StatusOfLease;
  /** The standbys, including those that were lost a moment ago. */
  readonly standbys: readonly StatusOfStandby[];
}

export interface StatusOfLease {
  readonly term: number;
  /** Null if nobody has held the lease yet. */
  readonly holder: string | null;
  readonly expires_at: string | null;
  readonly released: boolean;
  /** Where the holder accepts calls from other instances; null if it accepts none. */
  readonly link: string | null;
  readonly held: boolean;
  /** How long the lease lasts without renewal; null while nobody holds it. */
  readonly remaining_seconds: number | null;
}

export interface StatusOfStandby {
  /** Such as `pid 12 on host`. */
  readonly name: string;
  /** How many revisions its state was behind; null until it has read the state. */
  readonly lag_revisions: number | null;
  /** Seconds since it was seen. */
  readonly silent_seconds: number;
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

/**
 * Settings that determine whether an acknowledged change can be lost or torn. Other unsafe settings are refused when
 * connecting.
 */
export interface Safety {
  readonly place: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly synchronous_standby_names: string;
  /** The name of the active instance; null if there is none. */
  readonly active: string | null;
}

export async function readSafety(address: StoreAddress): Promise<Safety> {
  return onPrimary(address, async (client, place) => {
    const { rows } = await client.query<Omit<Safety, 'place' | 'active'>>(`
      select current_setting('full_page_writes') as full_page_writes,
        current_setting('synchronous_commit') as synchronous_commit,
        current_setting('synchronous_standby_names') as synchronous_standby_names
    `);
    if (rows[0] === undefined) throw new Error('The database does not show its settings');
    const hasTables = (await readSchemaVersion(client)) === SCHEMA_VERSION;
    const lease = hasTables ? await readLease(client) : null;
    return { place, active: lease?.held === true ? lease.holder : null, ...rows[0] };
  });
}

/** Creates the tables unless they exist. Throws if they have a version other than that of this program. */
export async function migrateDatabase(address: StoreAddress) {
  return onPrimary(address, async (client, place) => {
    const from = await createTables(client, place);
    return { place, from, to: SCHEMA_VERSION };
  });
}

async function readStatusOfContents(client: Client): Promise<StatusOfContents> {
  const meta = await readMetaOf(client);
  const { revision } = metaValue(meta, 'totals');
  return {
    networkName: metaValue(meta, 'network')?.network_name ?? null,
    revision,
    rows: await countRows(client),
    lease: await readLease(client),
    standbys: (await readInstances(client, KEPT_SECONDS))
      .filter(({ isActive }) => !isActive)
      .map(({ name, lag, silent }) => ({ name, lag_revisions: lag, silent_seconds: silent })),
  };
}

async function countRows(client: Client): Promise<StatusOfContents['rows']> {
  const counts = ['subjects', 'nonces', 'audit', 'liveness', 'history'].map(
    (table) => `(select count(*) from mesh_na.${table})::int as ${table}`,
  );
  const { rows } = await client.query<{ [table: string]: number }>(`select ${counts.join(', ')}`);
  return rows[0] ?? {};
}

async function readLease(client: Client): Promise<StatusOfLease> {
  const { rows } = await client.query<StatusOfLease>(`
    select epoch::int as term, holder_name as holder, released, link,
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

/** What a database guarantees when it acknowledges a commit. */
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

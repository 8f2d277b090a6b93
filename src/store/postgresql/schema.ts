/** The tables in PostgreSQL and their version. They are created by a command, never at startup. */
import type { Client } from 'pg';
import { DamagedState, OtherSchema } from '../rows.ts';
import type { StoreAddress } from './address.ts';
import { inTransaction } from './commit.ts';
import { type Connection, connectToPrimary, disconnect, readingProblem } from './connect.ts';

const INSTANCES = `
-- Each instance writes its row once a second. What is in it is of no use after a crash.
create unlogged table mesh_na.instances (
  -- New at each start of the instance.
  id uuid primary key,
  name text not null,
  -- Where it takes what other instances forward, as host:port.
  address text,
  active boolean not null,
  -- The revision of the state that it keeps ready, and how many revisions it was behind.
  revision bigint,
  lag bigint,
  -- The staged authority key, if it holds that.
  next_key text,
  seen timestamptz not null
);
`;

const TABLES = `
create schema mesh_na;

-- The totals of the other tables, the shapes of the rows, the owner of the state, and the version of these tables.
create table mesh_na.meta (
  key text collate "C" primary key,
  value bytea not null
);

-- Ids are stored as UTF-8 bytes, so that they sort the same in every locale and may contain any character.
create table mesh_na.subjects (
  kind text collate "C" not null,
  id bytea not null,
  version bigint not null,
  revision bigint not null,
  snapshot bytea not null,
  primary key (kind, id)
);

create table mesh_na.nonces (
  bucket bigint not null,
  revision bigint not null,
  digests bytea not null,
  -- The answers to some of these requests.
  answers bytea,
  primary key (bucket, revision)
);

create table mesh_na.audit (
  last_entry bigint primary key,
  entries bytea not null
);

create table mesh_na.liveness (
  id bytea primary key,
  contact bytea not null,
  flush bigint not null default 0
);
create sequence mesh_na.liveness_flushes;

create table mesh_na.history (
  seconds bigint not null,
  slot bigint not null,
  counted bytea not null,
  primary key (seconds, slot)
);

-- What each flush changed, for the standbys that keep the state ready.
create table mesh_na.changes (
  -- The last revision of this flush, and of the flush before it.
  revision bigint primary key,
  follows bigint not null,
  -- A database that lost data may have had another change with the same revision, by another holder.
  holder uuid,
  -- The subjects that were written or removed.
  kinds text[] not null,
  ids bytea[] not null,
  -- The minutes of the nonces that were used.
  buckets bigint[] not null
);

-- A commit takes a key-share lock on the only row. It does not conflict with renewals, only with a change of holder, which
-- replaces the row's key.
-- The table and its column epoch, the number of the term, have the names that earlier versions gave them.
create table mesh_na.writer_lease (
  epoch bigint primary key,
  holder uuid,
  holder_name text,
  expires_at timestamptz not null,
  released boolean not null,
  is_only boolean not null default true unique check (is_only),
  -- The settings on which all instances must agree, as JSON text: a digest by the name of each setting.
  configuration text,
  -- Where the holder accepts calls from other instances, as host:port.
  link text,
  -- How long the lease lasts without a renewal. Waiting instances measure it with their own clocks.
  lasts interval
);

${INSTANCES}
insert into mesh_na.writer_lease (epoch, expires_at, released) values (0, '-infinity', true);
insert into mesh_na.meta (key, value) values ('totals', '');

create function mesh_na.hold_lease(mine bigint) returns void language plpgsql as $$
begin
  perform 1 from mesh_na.writer_lease where epoch = mine for key share;
  if not found then
    raise exception 'Another process has taken over the database' using errcode = 'MN001';
  end if;
end $$;

-- These settings apply to this transaction alone, because behind a pooler, the next one may run in a session without them. The
-- second one is needed to learn that a commit stopped waiting for its standby.
create function mesh_na.commit_durably() returns void language plpgsql as $$
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  perform set_config('client_min_messages', 'warning', true);
end $$;

-- A database that lost data may give two holders the same epoch.
create function mesh_na.hold_lease(mine bigint, me uuid) returns void language plpgsql as $$
begin
  perform 1 from mesh_na.writer_lease where epoch = mine and holder = me for key share;
  if not found then
    raise exception 'Another process has taken over the database' using errcode = 'MN001';
  end if;
  perform mesh_na.commit_durably();
end $$;

create function mesh_na.replace_totals(known bytea, next bytea) returns void language plpgsql as $$
begin
  update mesh_na.meta set value = next where key = 'totals' and value = known;
  if not found then
    raise exception 'The database is at another revision than this process' using errcode = 'MN002';
  end if;
end $$;

create function mesh_na.put_meta(name text, row_value bytea) returns void language sql as $$
  insert into mesh_na.meta values (name, row_value)
    on conflict (key) do update set value = excluded.value
$$;

-- Stores all units of a batch, or nothing if the version of a subject is not the one to be replaced.
create function mesh_na.commit_units(
  mine bigint, known_totals bytea, next_totals bytea, shapes bytea,
  kinds text[], ids bytea[], replaced bigint[], versions bigint[], revisions bigint[], snapshots bytea[],
  removed_kinds text[], removed_ids bytea[], removed_versions bigint[],
  unlisted bytea[],
  buckets bigint[], flushed bigint, digests bytea[], answers bytea[],
  last_entry bigint, entries bytea
) returns void language plpgsql as $$
declare
  stored bigint := 0;
  touched bigint;
begin
  perform mesh_na.hold_lease(mine);
  perform mesh_na.replace_totals(known_totals, next_totals);
  if shapes is not null then
    perform mesh_na.put_meta('shapes', shapes);
  end if;
  if cardinality(kinds) > 0 then
    insert into mesh_na.subjects
      select w.kind, w.id, w.version, w.revision, w.snapshot
      from unnest(kinds, ids, replaced, versions, revisions, snapshots)
        as w (kind, id, replaced, version, revision, snapshot)
      where w.replaced = 0
      on conflict do nothing;
    get diagnostics touched = row_count;
    stored := stored + touched;
    update mesh_na.subjects as s
      set version = w.version, revision = w.revision, snapshot = w.snapshot
      from unnest(kinds, ids, replaced, versions, revisions, snapshots)
        as w (kind, id, replaced, version, revision, snapshot)
      where w.replaced > 0 and s.kind = w.kind and s.id = w.id and s.version = w.replaced;
    get diagnostics touched = row_count;
    stored := stored + touched;
  end if;
  if cardinality(removed_kinds) > 0 then
    delete from mesh_na.subjects as s
      using unnest(removed_kinds, removed_ids, removed_versions) as r (kind, id, version)
      where s.kind = r.kind and s.id = r.id and s.version = r.version;
    get diagnostics touched = row_count;
    stored := stored + touched;
  end if;
  if stored <> cardinality(kinds) + cardinality(removed_kinds) then
    raise exception 'A subject has changed meanwhile' using errcode = 'MN003';
  end if;
  if cardinality(unlisted) > 0 then
    delete from mesh_na.liveness as l using unnest(unlisted) as r (id) where l.id = r.id;
  end if;
  insert into mesh_na.nonces
    select f.bucket, flushed, f.digests, f.answers
    from unnest(buckets, digests, answers) as f (bucket, digests, answers);
  if entries is not null then
    insert into mesh_na.audit values (last_entry, entries);
  end if;
end $$;

create function mesh_na.note_changes(
  last_revision bigint, before bigint, changed_kinds text[], changed_ids bytea[], spent_buckets bigint[]
) returns void language sql as $$
  insert into mesh_na.changes
    select last_revision, before, l.holder, changed_kinds, changed_ids, spent_buckets
    from mesh_na.writer_lease as l
$$;

-- A standby that is behind the oldest change kept here reads the whole state again.
create function mesh_na.store_liveness(mine bigint, ids bytea[], contacts bytea[], times bytea)
returns void language plpgsql as $$
declare
  number bigint;
begin
  perform mesh_na.hold_lease(mine);
  number := nextval('mesh_na.liveness_flushes');
  insert into mesh_na.liveness
    select c.id, c.contact, number from unnest(ids, contacts) as c (id, contact)
    on conflict (id) do update set contact = excluded.contact, flush = excluded.flush;
  if times is not null then
    perform mesh_na.put_meta('unstored_times', times);
    delete from mesh_na.changes
      where revision <= (select max(newest.revision) from mesh_na.changes as newest) - 300000;
  end if;
end $$;

create function mesh_na.store_history(mine bigint, lengths bigint[], slots bigint[], counts bytea[])
returns void language plpgsql as $$
begin
  perform mesh_na.hold_lease(mine);
  insert into mesh_na.history
    select h.seconds, h.slot, h.counted from unnest(lengths, slots, counts) as h (seconds, slot, counted)
    on conflict (seconds, slot) do update set counted = excluded.counted;
end $$;

-- The caller has counted the rows, because the totals include how many remain.
create function mesh_na.forget_nonces(
  mine bigint, known_totals bytea, next_totals bytea, times bytea,
  last_bucket bigint, last_revision bigint, counted bigint
) returns void language plpgsql as $$
declare
  touched bigint;
begin
  perform mesh_na.hold_lease(mine);
  perform mesh_na.replace_totals(known_totals, next_totals);
  perform mesh_na.put_meta('forgotten_times', times);
  delete from mesh_na.nonces where (bucket, revision) <= (last_bucket, last_revision);
  get diagnostics touched = row_count;
  if touched <> counted then
    raise exception 'The nonces have changed meanwhile' using errcode = 'MN002';
  end if;
end $$;

-- Fails if there is no room for half a megabyte. The data is incompressible, so it really occupies pages.
create function mesh_na.try_room() returns void language plpgsql as $$
begin
  insert into mesh_na.meta
    select 'room', string_agg(sha512(convert_to(n::text, 'UTF8')), ''::bytea)
    from generate_series(1, 8192) as n;
  delete from mesh_na.meta where key = 'room';
end $$;
`;

export const SCHEMA_VERSION = 7;

/** The version of program 0.2.0, which these statements make the one of this program. */
const FORMER_VERSION = 6;
const UPGRADE = `
${INSTANCES}
alter table mesh_na.writer_lease drop column wanted_until;
`;

/** The kind of database, and the version of the tables that this program reads and writes. */
export const DATABASE = { backend: 'postgresql', schemaVersion: SCHEMA_VERSION } as const;

/** An arbitrary number that no other program in the database is likely to lock. */
const CREATION_LOCK = 6_103_245_771;

/** The version of the tables; 0 if there are none. */
export async function readSchemaVersion(client: Client): Promise<number> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select to_regclass('mesh_na.meta') is not null as exists`,
  );
  if (rows[0]?.exists !== true) return 0;
  const version = await readSchemaRow(client);
  // Tables and version are created together, so a missing version means that the disk lost a page.
  if (version === undefined) throw new DamagedState('table meta has no schema version');
  return version;
}

async function readSchemaRow(client: Client): Promise<number | undefined> {
  try {
    const { rows } = await client.query<{ value: Buffer }>(
      `select value from mesh_na.meta where key = 'schema'`,
    );
    return rows[0]?.value[0];
  } catch (cause) {
    throw readingProblem('meta', cause);
  }
}

/**
 * Creates the tables unless they exist, or upgrades them unless an instance uses them; returns the previous version, which
 * is 0 if there were none.
 */
export function createTables(client: Client, shown: string): Promise<number> {
  return inTransaction(client, async () => {
    await client.query('select pg_advisory_xact_lock($1)', [CREATION_LOCK]);
    const version = await readSchemaVersion(client);
    if (version === FORMER_VERSION) await assertUnused(client, shown);
    else if (version !== 0) assertVersion(version, shown);
    if (version !== SCHEMA_VERSION) {
      await client.query(version === 0 ? TABLES : UPGRADE);
      await client.query(`select mesh_na.put_meta('schema', $1)`, [Buffer.of(SCHEMA_VERSION)]);
    }
    return version;
  });
}

/** Locks the lease until the end of the transaction. Throws a one-sentence error if an instance holds it. */
async function assertUnused(client: Client, shown: string): Promise<void> {
  const { rows } = await client.query<{ holder: string }>(`
    select holder_name as holder from mesh_na.writer_lease
    where not released and expires_at > clock_timestamp() for update
  `);
  const holder = rows[0]?.holder;
  if (holder === undefined) return;
  throw new Error(
    `${holder} serves the database at ${shown}: stop all instances, and repeat this command before the next start`,
  );
}

/** Throws a one-sentence error that says what to do, unless the tables have the version of this program. */
export async function assertSchema(client: Client, shown: string): Promise<void> {
  const version = await readSchemaVersion(client);
  if (version === 0) {
    const cure = 'mesh-na store migrate, with the same --store, makes them';
    throw new Error(`The database at ${shown} has no tables of an authority; ${cure}`);
  }
  assertVersion(version, shown);
}

/** Connects to a database whose tables have the version of this program; otherwise throws a one-sentence error. */
export async function connectToTables(address: StoreAddress): Promise<Connection> {
  const connection = await connectToPrimary(address);
  try {
    await assertSchema(connection.client, connection.shown);
    return connection;
  } catch (cause) {
    await disconnect(connection.client);
    throw cause;
  }
}

function assertVersion(version: number, shown: string): void {
  if (version === SCHEMA_VERSION) return;
  const cure =
    version === FORMER_VERSION
      ? 'mesh-na store migrate, with the same --store, upgrades it while no instance runs'
      : undefined;
  throw new OtherSchema(`The database at ${shown}`, version, SCHEMA_VERSION, cure);
}

/** Where the bare server stores what it enrolls. */
import { open } from 'lmdb';
import pg from 'pg';

/** A folder on the disk of the authority's data folder, or the address of the authority's database. */
export type BarePlace = { readonly folder: string } | { readonly url: string };

export interface BareRows {
  find(id: string): string | undefined;
  /** Resolves when the rows, and an entry of the log, are on disk. */
  put(rows: ReadonlyMap<string, string>, entry: string): Promise<unknown>;
}

export function openBareRows(place: BarePlace): BareRows | Promise<BareRows> {
  return 'folder' in place ? inLmdb(place.folder) : inPostgresql(place.url);
}

function inLmdb(path: string): BareRows {
  // As in the authority, a write is acknowledged when it is on disk.
  const env = open({ path, overlappingSync: false });
  const stored = env.openDB<string, string>({ name: 'rows', encoding: 'string' });
  const log = env.openDB<string, number>({ name: 'log', encoding: 'string' });
  let entries = 0;
  return {
    find: (id) => stored.get(id),
    put(rows, entry) {
      for (const [id, row] of rows) void stored.put(id, row);
      entries += 1;
      return log.put(entries, entry);
    },
  };
}

const TABLES = `
  create schema bare;
  create table bare.rows (id text primary key, content text not null);
  create table bare.log (id bigint generated always as identity primary key, content text not null)`;

const INSERT = {
  name: 'bare_insert',
  text: `
    with stored as (
      insert into bare.rows select * from unnest($1::text[], $2::text[])
      on conflict (id) do update set content = excluded.content
    )
    insert into bare.log (content) select * from unnest($3::text[])`,
};

/** Rows that arrive during a transaction share the next one. They are also in memory, as in the authority. */
async function inPostgresql(connectionString: string): Promise<BareRows> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(TABLES);
  const held = new Map<string, string>();
  let rows: [string, string][] = [];
  let entries: string[] = [];
  let latest: Promise<unknown> = Promise.resolve();

  function store(): Promise<unknown> {
    const values = [rows.map(([id]) => id), rows.map(([, row]) => row), entries];
    rows = [];
    entries = [];
    return client.query({ ...INSERT, values });
  }

  return {
    find: (id) => held.get(id),
    put(added, entry) {
      if (entries.length === 0) latest = latest.then(store);
      for (const [id, row] of added) held.set(id, row);
      rows.push(...added);
      entries.push(entry);
      return latest;
    },
  };
}

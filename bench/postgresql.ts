/**
 * Enrollments with the state in PostgreSQL, compared to a database client that only inserts the same rows in
 * transactions of the same size.
 */
import { join } from 'node:path';
import pg from 'pg';
import { systemRuntime } from '../src/base/runtime.ts';
import { contest, type Measured, type Settings } from './contest.ts';
import { type Instances, startInstances } from './instances.ts';
import type { Load } from './load.ts';
import { busyClientNotes, compare, lineOf, type Report } from './report.ts';
import type { RoundResult } from './round.ts';

const TARGET = 0.5;
const CONNECTIONS = 32;
/** Rounds have a fixed number of requests; this only ends a round that hangs. */
const LONGEST_SECONDS = 600;
const WARM_UP_JOINS = 2000;
const HIGHEST_COUNT = 100_000;

export async function benchPostgresql(load: Load, settings: Settings): Promise<Report> {
  const { cpuProf, threads } = settings;
  const connections = settings.connections ?? CONNECTIONS;
  await using instances = await startInstances();
  const na = await instances.start(threads, cpuProf && join(cpuProf, 'postgresql'));
  const bare = await openBare(instances);
  let perSecond = 0;
  let flushes: readonly Flush[] = [];
  const sizes: number[] = [];

  async function enroll(seconds: number): Promise<RoundResult> {
    const count =
      perSecond === 0 ? WARM_UP_JOINS : Math.min(HIGHEST_COUNT, Math.ceil(seconds * perSecond));
    const plan = { target: na, connections, seconds: LONGEST_SECONDS, rate: null };
    const result = await load.ask('joins', { plan, network: na.network, count });
    perSecond = count / result.seconds;
    flushes = await bare.lastFlushes();
    sizes.push(count / flushes.length);
    return result;
  }
  const [ours, theirs] = (await contest(
    [
      { name: 'NA: joins', run: enroll },
      { name: 'bare client', run: () => bare.insert(flushes) },
    ],
    settings,
  )) as [Measured, Measured];
  await bare.close();
  const lowest = Math.min(...sizes).toFixed(1);
  return {
    benchmark: 'postgresql',
    about: `joins on ${connections} connections, ${threads} thread(s), and their rows inserted by a bare client`,
    lines: [ours, theirs].map(lineOf),
    comparisons: [compare(ours, theirs, TARGET)],
    notes: [
      `a transaction had the rows of ${lowest} to ${Math.max(...sizes).toFixed(1)} joins on average`,
      'the CPU is that of the authority, and of the client; the database had its own beside it',
      ...busyClientNotes([ours]),
    ],
  };
}

/** The rows that one transaction of the authority has written, as columns. */
interface Flush {
  readonly joins: number;
  readonly values: readonly unknown[];
}

/** The tables to copy, without what only the authority needs: checks, and rows of other tables. */
const TABLES = ['subjects', 'nonces', 'audit', 'changes'];

const FLUSHES = `select * from mesh_na.changes where revision > $1 order by revision`;
const SUBJECTS = `select * from mesh_na.subjects where revision > $1 order by revision`;
const NONCES = `select * from mesh_na.nonces where revision > $1 order by revision`;
/** Each flush with joins has one row. */
const AUDIT = `select * from mesh_na.audit order by last_entry desc limit $1`;

const INSERT = {
  name: 'bare_insert',
  text: `
    with subjects as (
      insert into bare.subjects
      select * from unnest($1::text[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bytea[])
    ), nonces as (
      insert into bare.nonces
      select bucket, $6::bigint, digests, answers
      from unnest($7::bigint[], $8::bytea[], $9::bytea[]) as n (bucket, digests, answers)
    ), audit as (
      insert into bare.audit values ($10::bigint, $11::bytea)
    )
    insert into bare.changes
    values ($6, $12::bigint, $13::uuid, $14::text[], $15::bytea[], $16::bigint[])`,
};

interface Revised {
  readonly revision: string;
}
interface ChangesRow extends Revised {
  readonly follows: string;
  readonly holder: string;
  readonly kinds: readonly string[];
  readonly ids: readonly Buffer[];
  readonly buckets: readonly string[];
}
interface SubjectRow extends Revised {
  readonly kind: string;
  readonly id: Buffer;
  readonly version: string;
  readonly snapshot: Buffer;
}
interface NonceRow extends Revised {
  readonly bucket: string;
  readonly digests: Buffer;
  readonly answers: Buffer | null;
}
interface AuditRow {
  readonly last_entry: string;
  readonly entries: Buffer;
}

async function openBare({ url }: Instances) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('create schema bare');
  for (const table of TABLES) {
    await client.query(`create table bare.${table} (like mesh_na.${table} including all)`);
  }
  let seen = 0;
  return {
    /** The flushes with joins since the previous call. */
    async lastFlushes(): Promise<readonly Flush[]> {
      const { rows: all } = await client.query<ChangesRow>(FLUSHES, [seen]);
      const flushes = all.filter(({ kinds }) => kinds.includes('certificate'));
      const [first, last] = [flushes[0], flushes.at(-1)];
      if (first === undefined || last === undefined) throw new Error('Nothing was enrolled');
      const { rows: subjects } = await client.query<SubjectRow>(SUBJECTS, [first.follows]);
      const { rows: nonces } = await client.query<NonceRow>(NONCES, [first.follows]);
      const { rows: audit } = await client.query<AuditRow>(AUDIT, [flushes.length]);
      audit.reverse();
      seen = Number(last.revision);
      return flushes.map((flush, index) => {
        const { revision, follows, holder, kinds, ids, buckets } = flush;
        const of = takeUpTo(subjects, Number(revision));
        const spent = takeUpTo(nonces, Number(revision));
        return {
          joins: Number(revision) - Number(follows),
          values: [
            of.map(({ kind }) => kind),
            of.map(({ id }) => id),
            of.map(({ version }) => version),
            of.map((subject) => subject.revision),
            of.map(({ snapshot }) => snapshot),
            revision,
            spent.map(({ bucket }) => bucket),
            spent.map(({ digests }) => digests),
            spent.map(({ answers }) => answers),
            audit[index]?.last_entry,
            audit[index]?.entries,
            follows,
            holder,
            kinds,
            ids,
            buckets,
          ],
        };
      });
    },
    /** Runs one transaction after another, each acknowledged before the next. */
    async insert(flushes: readonly Flush[]): Promise<RoundResult> {
      const used = process.cpuUsage();
      const startedAt = systemRuntime.elapsed();
      for (const { values } of flushes) await client.query({ ...INSERT, values: [...values] });
      const seconds = (systemRuntime.elapsed() - startedAt) / 1000;
      const { user, system } = process.cpuUsage(used);
      const cpuSeconds = (user + system) / 1_000_000;
      return {
        answered: flushes.reduce((sum, { joins }) => sum + joins, 0),
        seconds,
        latency: null,
        serverCpuSeconds: cpuSeconds,
        mainThreadSeconds: cpuSeconds,
        clientCpuSeconds: 0,
        refusals: {},
        firstRefusal: null,
      };
    },
    close: () => client.end(),
  };
}

/** Removes rows up to the revision from the front of a list that is in the order of revisions. */
function takeUpTo<Row extends Revised>(rows: Row[], revision: number): Row[] {
  const end = rows.findIndex((row) => Number(row.revision) > revision);
  return rows.splice(0, end === -1 ? rows.length : end);
}

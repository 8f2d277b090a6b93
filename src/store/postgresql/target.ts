/** Writes a whole state to a database without one, in one transaction: there is no state or all of it. */
import { mkdirSync } from 'node:fs';
import { auditLineOf, encodeEntries } from '../audit-rows.ts';
import { encodeRow } from '../rows.ts';
import { createShapes } from '../shapes.ts';
import type { AuditEntry, StoredLiveness, StoredSubject } from '../store.ts';
import type { StateFacts, StateTarget } from '../stream/ports.ts';
import type { NonceRow, StreamRows, StreamTable } from '../stream/rows.ts';
import {
  encodeAnswers,
  encodeEpoch,
  encodeLiveness,
  encodeNonces,
  encodeShapes,
  encodeTimes,
} from '../table-rows.ts';
import { encodeTotals } from '../totals.ts';
import { assertArrived, decodeArrival } from '../trail/arrival.ts';
import { assertKeyLength } from '../units.ts';
import { markInUse } from '../usage-mark.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { readMeta, totalsIn } from './contents.ts';
import { assertSchema } from './schema.ts';

/** `dataDir` is the folder of the network's keys, which is marked as in use. Throws when there is state. */
export async function openPostgresqlTarget(
  address: StoreAddress,
  dataDir: string,
): Promise<StateTarget> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const { client, shown } = await connectToPrimary(address);
  try {
    await assertSchema(client, shown);
    await client.query('begin');
    // Nobody can become the holder of the lease before this transaction has ended.
    await client.query('select epoch from mesh_na.writer_lease for update');
    const meta = await readMeta(client);
    assertArrived(decodeArrival(meta.get('arriving')), `the database at ${shown}`);
    if (meta.has('network') || totalsIn(meta).revision > 0) {
      throw new Error(`The database at ${shown} holds state already`);
    }
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
  const shapes = createShapes([]);
  let subjects = 0;
  let nonceRows = 0;
  let auditEntries = 0;

  async function insert(table: string, columns: readonly unknown[][], types: readonly string[]) {
    const values = types.map((type, index) => `$${index + 1}::${type}[]`).join(', ');
    const text = `insert into mesh_na.${table} select * from unnest(${values})`;
    await client.query(text, [...columns]);
  }

  async function putMeta(key: string, row: Buffer): Promise<void> {
    await client.query('select mesh_na.put_meta($1, $2)', [key, row]);
  }

  const puts: {
    readonly [Table in StreamTable]: (rows: readonly StreamRows[Table][]) => Promise<void>;
  } = {
    async subjects(rows: readonly StoredSubject[]) {
      for (const { kind, id } of rows) assertKeyLength(kind + id);
      subjects += rows.length;
      const columns = [
        rows.map(({ kind }) => kind),
        rows.map(({ id }) => Buffer.from(id)),
        rows.map(({ version }) => version),
        rows.map(() => 0),
        rows.map(({ kind, id, version, snapshot }) =>
          encodeRow('subjects', [kind, id], shapes.flatten(snapshot), version),
        ),
      ];
      await insert('subjects', columns, ['text', 'bytea', 'bigint', 'bigint', 'bytea']);
    },
    async nonces(rows: readonly NonceRow[]) {
      nonceRows += rows.length;
      const columns = [
        rows.map(({ bucket }) => bucket),
        rows.map(({ revision }) => revision),
        rows.map(({ bucket, revision, digests }) => encodeNonces([bucket, revision], digests)),
        rows.map(({ bucket, revision, answers }) => {
          const kept = answers.map(([digest, request, answer]) => ({ digest, request, answer }));
          return kept.length === 0 ? null : encodeAnswers([bucket, revision], kept);
        }),
      ];
      await insert('nonces', columns, ['bigint', 'bigint', 'bytea', 'bytea']);
    },
    async audit(rows: readonly AuditEntry[]) {
      auditEntries += rows.length;
      const entries = encodeEntries(auditEntries, rows.map(auditLineOf));
      await insert('audit', [[auditEntries], [entries]], ['bigint', 'bytea']);
    },
    async liveness(rows: readonly StoredLiveness[]) {
      const columns = [rows.map(({ id }) => Buffer.from(id)), rows.map(encodeLiveness)];
      await insert('liveness', columns, ['bytea', 'bytea']);
    },
  };

  async function putFacts(facts: StateFacts): Promise<void> {
    const { revision } = facts;
    await putMeta('network', encodeRow('meta', 'network', facts.network));
    await putMeta('epoch', encodeEpoch(facts.epoch));
    await putMeta('shapes', encodeShapes(shapes.table));
    await putMeta('forgotten_times', encodeTimes('forgotten_times', facts.forgottenTimes));
    await putMeta('unstored_times', encodeTimes('unstored_times', facts.unstoredTimes));
    await putMeta('totals', encodeTotals({ revision, subjects, nonceRows, auditEntries }));
    await client.query(
      `update mesh_na.writer_lease set epoch = epoch + 1, holder_name = 'an import',
        expires_at = clock_timestamp(), released = $1`,
      [facts.isClosed],
    );
  }

  return {
    async write(table, rows) {
      if (rows.length > 0) await puts[table](rows);
    },
    async finish(facts) {
      await putFacts(facts);
      await client.query('commit');
      markInUse(dataDir, facts.network);
      await disconnect(client);
    },
    // The transaction ends with its connection.
    abandon: () => disconnect(client),
  };
}

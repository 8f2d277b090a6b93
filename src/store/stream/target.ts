/** Encodes a state for a place that has none, in any database. */
import { auditLineOf, encodeEntries } from '../audit-log.ts';
import { metaChange } from '../meta-rows.ts';
import { encodeRow } from '../rows.ts';
import { createShapes } from '../shapes.ts';
import type { AuditEntry, StoredHistory, StoredLiveness, StoredSubject } from '../store.ts';
import {
  encodeAnswers,
  encodeHistory,
  encodeLiveness,
  encodeNonces,
  historyKey,
  type NonceKey,
} from '../table-rows.ts';
import type { StoredRow, TableChange, Tables } from '../tables.ts';
import { assertKeyLength } from '../units.ts';
import type { StateFacts, StateTarget } from './ports.ts';
import type { RowBatch } from './read.ts';
import type { NonceRow, StreamRows, StreamTable } from './rows.ts';

/** Fills a place with a state. If reading or writing fails, nothing is left behind. */
export async function fill(
  target: StateTarget,
  batches: AsyncIterable<RowBatch>,
  facts: StateFacts,
): Promise<void> {
  try {
    for await (const { table, rows } of batches) await target.write(table, rows);
    await target.finish(facts);
  } catch (cause) {
    await target.abandon();
    throw cause;
  }
}

export interface TargetPlace extends Pick<StateTarget, 'abandon' | 'finish'> {
  readonly tables: Pick<Tables, 'write'>;
}

export function targetOf(place: TargetPlace): StateTarget {
  const shapes = createShapes([]);
  let subjects = 0;
  let nonceRows = 0;
  let auditEntries = 0;

  const encoders: {
    readonly [Table in StreamTable]: (rows: readonly StreamRows[Table][]) => readonly TableChange[];
  } = {
    subjects(rows: readonly StoredSubject[]) {
      subjects += rows.length;
      const encoded = rows.map(({ kind, id, version, snapshot }) => {
        assertKeyLength(kind + id);
        const key = [kind, id] as const;
        const row = encodeRow('subjects', key, shapes.flatten(snapshot), version);
        return { key, version, row };
      });
      return [{ table: 'subjects', put: encoded }];
    },
    nonces(rows: readonly NonceRow[]) {
      nonceRows += rows.length;
      const withAnswers = rows.filter(({ answers }) => answers.length > 0);
      const nonces = rows.map((row) =>
        unversioned(keyOf(row), encodeNonces(keyOf(row), row.digests)),
      );
      const answers = withAnswers.map((row) =>
        unversioned(keyOf(row), encodeAnswers(keyOf(row), row.answers)),
      );
      return [
        { table: 'nonces', put: nonces },
        { table: 'answers', put: answers },
      ];
    },
    audit(rows: readonly AuditEntry[]) {
      auditEntries += rows.length;
      const row = encodeEntries(auditEntries, rows.map(auditLineOf));
      return [{ table: 'audit', put: [unversioned(auditEntries, row)] }];
    },
    liveness: (rows: readonly StoredLiveness[]) => [
      {
        table: 'liveness',
        put: rows.map((contact) => unversioned(contact.id, encodeLiveness(contact))),
      },
    ],
    history: (rows: readonly StoredHistory[]) => [
      {
        table: 'history',
        put: rows.map((row) => unversioned(historyKey(row), encodeHistory(row))),
      },
    ],
  };

  return {
    async write(table, rows) {
      if (rows.length > 0) await place.tables.write(encoders[table](rows));
    },
    async finish(facts) {
      const { revision, network, epoch, forgottenTimes, unstoredTimes } = facts;
      const meta = metaChange({
        network,
        epoch,
        shapes: shapes.table,
        forgotten_times: forgottenTimes,
        unstored_times: unstoredTimes,
        totals: { revision, subjects, nonceRows, auditEntries },
      });
      await place.tables.write([meta]);
      await place.finish(facts);
    },
    abandon: () => place.abandon(),
  };
}

function unversioned(key: StoredRow['key'], row: Buffer): StoredRow {
  return { key, version: 0, row };
}

function keyOf({ bucket, revision }: NonceRow): NonceKey {
  return [bucket, revision];
}

/** Encodes a state for a place that has none, whatever database it is in. */
import { auditLineOf, encodeEntries } from '../audit-rows.ts';
import { encodeRow, type TableName } from '../rows.ts';
import { createShapes } from '../shapes.ts';
import type { AuditEntry, StoredLiveness, StoredSubject } from '../store.ts';
import type { MetaRows, RowWriter, StoredRow } from '../stored-rows.ts';
import {
  encodeAnswers,
  encodeEpoch,
  encodeLiveness,
  encodeNonces,
  encodeShapes,
  encodeTimes,
  type NonceKey,
} from '../table-rows.ts';
import { encodeTotals } from '../totals.ts';
import { assertKeyLength } from '../units.ts';
import type { StateFacts, StateTarget } from './ports.ts';
import type { NonceRow, StreamRows, StreamTable } from './rows.ts';

export interface TargetPlace extends Pick<RowWriter, 'put'> {
  /** Makes a state of the rows. */
  finish(meta: MetaRows, facts: StateFacts): Promise<void>;
  abandon(): Promise<void>;
}

type EncodedRows = readonly (readonly [TableName, readonly StoredRow[]])[];

export function targetOf(place: TargetPlace): StateTarget {
  const shapes = createShapes([]);
  let subjects = 0;
  let nonceRows = 0;
  let auditEntries = 0;

  const encoders: {
    readonly [Table in StreamTable]: (rows: readonly StreamRows[Table][]) => EncodedRows;
  } = {
    subjects(rows: readonly StoredSubject[]) {
      subjects += rows.length;
      const encoded = rows.map(({ kind, id, version, snapshot }) => {
        assertKeyLength(kind + id);
        const key = [kind, id] as const;
        const row = encodeRow('subjects', key, shapes.flatten(snapshot), version);
        return { key, version, row };
      });
      return [['subjects', encoded]];
    },
    nonces(rows: readonly NonceRow[]) {
      nonceRows += rows.length;
      const withAnswers = rows.filter(({ answers }) => answers.length > 0);
      return [
        [
          'nonces',
          rows.map((row) => unversioned(keyOf(row), encodeNonces(keyOf(row), row.digests))),
        ],
        ['answers', withAnswers.map((row) => unversioned(keyOf(row), encodedAnswers(row)))],
      ];
    },
    audit(rows: readonly AuditEntry[]) {
      auditEntries += rows.length;
      const row = encodeEntries(auditEntries, rows.map(auditLineOf));
      return [['audit', [unversioned(auditEntries, row)]]];
    },
    liveness: (rows: readonly StoredLiveness[]) => [
      ['liveness', rows.map((contact) => unversioned(contact.id, encodeLiveness(contact)))],
    ],
  };

  function metaOf(facts: StateFacts): MetaRows {
    const { revision, network, epoch, forgottenTimes, unstoredTimes } = facts;
    return new Map([
      ['network', encodeRow('meta', 'network', network)],
      ['epoch', encodeEpoch(epoch)],
      ['shapes', encodeShapes(shapes.table)],
      ['forgotten_times', encodeTimes('forgotten_times', forgottenTimes)],
      ['unstored_times', encodeTimes('unstored_times', unstoredTimes)],
      ['totals', encodeTotals({ revision, subjects, nonceRows, auditEntries })],
    ]);
  }

  return {
    async write(table, rows) {
      if (rows.length === 0) return;
      for (const [stored, encoded] of encoders[table](rows)) await place.put(stored, encoded);
    },
    finish: (facts) => place.finish(metaOf(facts), facts),
    abandon: () => place.abandon(),
  };
}

function unversioned(key: StoredRow['key'], row: Buffer): StoredRow {
  return { key, version: 0, row };
}

function keyOf({ bucket, revision }: NonceRow): NonceKey {
  return [bucket, revision];
}

function encodedAnswers(row: NonceRow): Buffer {
  const kept = row.answers.map(([digest, request, answer]) => ({ digest, request, answer }));
  return encodeAnswers(keyOf(row), kept);
}

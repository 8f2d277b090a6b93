/** Reads a whole state from LMDB as of one moment, also while a service in another process writes to it. */
import type { RootDatabase } from 'lmdb';
import type { StateReader } from '../move/ports.ts';
import { DamagedState } from '../rows.ts';
import type { StateSource } from '../stream/ports.ts';
import { sourceOf } from '../stream/source.ts';
import { totalsIn } from '../totals.ts';
import { readAuditEnd } from './audit.ts';
import { openEnvironment, openMeta, openTables, type Tables } from './environment.ts';
import { checkForReading } from './folder-state.ts';
import { assertSchema, isClosed, SCHEMA_VERSION } from './ownership.ts';
import { lmdbRows, metaRows, type Transaction } from './stored-rows.ts';

/** Throws one clear sentence when there is no state, or when it is damaged. */
export function openLmdbSource(dataDir: string): StateSource {
  const { env, tables } = openForReading(dataDir);
  const transaction = env.useReadTransaction();
  return orClosed(env, () =>
    sourceAt(tables, transaction, async () => {
      transaction.done();
      await env.close();
    }),
  );
}

/** Reads one moment after the other. Each opening of a database that is being written writes to it, so it is opened once. */
export function openLmdbReader(dataDir: string): StateReader {
  const { env, tables } = openForReading(dataDir);
  let transaction: Transaction | null = null;
  let isOpen = true;

  function end(): void {
    transaction?.done();
    transaction = null;
  }

  return {
    async next() {
      end();
      // LMDB would go on with the reader of an earlier read in the same turn.
      env.resetReadTxn();
      transaction = env.useReadTransaction();
      assertSchema(tables.meta.get('schema', { transaction }), false);
      return {
        ...lmdbRows(tables, transaction),
        meta: metaRows(tables, transaction),
        source: sourceAt(tables, transaction, () => Promise.resolve()),
      };
    },
    async close() {
      end();
      if (isOpen) await env.close();
      isOpen = false;
    },
  };
}

function openForReading(dataDir: string): { env: RootDatabase; tables: Tables } {
  checkForReading(dataDir);
  const env = openEnvironment(dataDir, true);
  return orClosed(env, () => {
    // Other layouts have other tables.
    assertSchema(openMeta(env).get('schema'), false);
    return { env, tables: openTables(env) };
  });
}

function orClosed<Result>(env: RootDatabase, work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    void env.close();
    throw cause;
  }
}

/** The state that the transaction sees. */
function sourceAt(
  tables: Tables,
  transaction: Transaction,
  close: () => Promise<void>,
): StateSource {
  const meta = metaRows(tables, transaction);
  const network = meta.get('network');
  if (network === undefined) throw new DamagedState('it does not say whose it is');
  return sourceOf(network, {
    rows: lmdbRows(tables, transaction),
    meta,
    database: { backend: 'lmdb', schemaVersion: SCHEMA_VERSION },
    auditHead: readAuditEnd(tables, totalsIn(meta).auditEntries, { transaction }).auditHead,
    isClosed: isClosed(tables, { transaction }),
    close,
  });
}

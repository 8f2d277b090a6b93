/**
 * Writes a whole state to a data folder that has none. The database is made in a folder beside its place and
 * moved there once it is complete and on disk: after a crash there is either no state or all of it.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
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
import { assertArrived } from '../trail/arrival.ts';
import { assertKeyLength } from '../units.ts';
import { markInUse } from '../usage-mark.ts';
import { arrivalIn } from './arrival.ts';
import { openEnvironment, openTables } from './environment.ts';
import { lockFolder } from './folder-lock.ts';
import { ownerRow, SCHEMA_VERSION } from './ownership.ts';

const STATE = 'state';
const STAGING = '.import';
const FIRST_OWNER = 1;

/** Throws one clear sentence when the folder has state. */
export function openLmdbTarget(dataDir: string): StateTarget {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockFolder(dataDir);
  const staging = join(dataDir, STAGING);
  try {
    assertArrived(arrivalIn(dataDir), dataDir);
    if (existsSync(join(dataDir, STATE))) throw new Error(`${dataDir} holds state already`);
    rmSync(staging, { recursive: true, force: true });
    mkdirSync(staging, { mode: 0o700 });
    return targetIn(dataDir, staging, () => lock.release());
  } catch (cause) {
    lock.release();
    throw cause;
  }
}

function targetIn(dataDir: string, staging: string, unlock: () => void): StateTarget {
  const env = openEnvironment(staging, false);
  const tables = openTables(env);
  const shapes = createShapes([]);
  let subjects = 0;
  let nonceRows = 0;
  let auditEntries = 0;
  let isOpen = true;

  const puts: { readonly [Table in StreamTable]: (rows: readonly StreamRows[Table][]) => void } = {
    subjects(rows: readonly StoredSubject[]) {
      for (const { kind, id, version, snapshot } of rows) {
        assertKeyLength(kind + id);
        const row = encodeRow('subjects', [kind, id], shapes.flatten(snapshot), version);
        tables.subjects.putSync([kind, id], row, version);
      }
      subjects += rows.length;
    },
    nonces(rows: readonly NonceRow[]) {
      for (const { bucket, revision, digests, answers } of rows) {
        const key: [number, number] = [bucket, revision];
        tables.nonces.putSync(key, encodeNonces(key, digests));
        if (answers.length > 0) {
          const kept = answers.map(([digest, request, answer]) => ({ digest, request, answer }));
          tables.answers.putSync(key, encodeAnswers(key, kept));
        }
      }
      nonceRows += rows.length;
    },
    audit(rows: readonly AuditEntry[]) {
      auditEntries += rows.length;
      tables.audit.putSync(auditEntries, encodeEntries(auditEntries, rows.map(auditLineOf)));
    },
    liveness(rows: readonly StoredLiveness[]) {
      for (const contact of rows) tables.liveness.putSync(contact.id, encodeLiveness(contact));
    },
  };

  function putFacts(facts: StateFacts): void {
    const { meta } = tables;
    const { revision } = facts;
    meta.putSync('schema', Buffer.of(SCHEMA_VERSION));
    meta.putSync('network', encodeRow('meta', 'network', facts.network));
    meta.putSync('epoch', encodeEpoch(facts.epoch));
    meta.putSync('shapes', encodeShapes(shapes.table));
    meta.putSync('forgotten_times', encodeTimes('forgotten_times', facts.forgottenTimes));
    meta.putSync('unstored_times', encodeTimes('unstored_times', facts.unstoredTimes));
    meta.putSync('totals', encodeTotals({ revision, subjects, nonceRows, auditEntries }));
    const state = facts.isClosed ? 'closed' : 'open';
    meta.putSync('owner', ownerRow(state, FIRST_OWNER), FIRST_OWNER);
  }

  async function end(): Promise<void> {
    if (!isOpen) return;
    isOpen = false;
    await env.close();
  }

  return {
    async write(table, rows) {
      if (rows.length > 0) env.transactionSync(() => puts[table](rows));
    },
    async finish(facts) {
      env.transactionSync(() => putFacts(facts));
      await end();
      renameSync(join(staging, STATE), join(dataDir, STATE));
      rmSync(staging, { recursive: true, force: true });
      markInUse(dataDir, facts.network);
      unlock();
    },
    async abandon() {
      await end();
      rmSync(staging, { recursive: true, force: true });
      unlock();
    },
  };
}

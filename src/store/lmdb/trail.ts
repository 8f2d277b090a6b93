/** Follows the state in a data folder beside the service that writes it, which does nothing for it. */
import { DamagedState } from '../rows.ts';
import { changeBatches } from '../trail/batches.ts';
import { trailMeta } from '../trail/meta.ts';
import type { StateTrail, TrailMeta, TrailReading } from '../trail/ports.ts';
import { checkForReading } from './folder-state.ts';
import { assertSchema } from './ownership.ts';
import { openSnapshots, type Snapshot } from './snapshot.ts';
import { sourceAt } from './source.ts';

/** Throws one clear sentence when there is no state, or when it is damaged. */
export function openLmdbTrail(dataDir: string): StateTrail {
  checkForReading(dataDir);
  const snapshots = openSnapshots(dataDir);
  let before: Snapshot | null = null;
  let present: Snapshot | null = null;
  let isOpen = true;

  async function next(): Promise<TrailReading> {
    before?.close();
    before = present;
    present = null;
    const snapshot = await snapshots.next();
    present = snapshot;
    const since = before;
    const { tables, transaction } = snapshot;
    assertSchema(tables.meta.get('schema', { transaction }), false);
    return {
      meta: metaIn(snapshot),
      isWhole: since === null,
      changes: (table) => changeBatches(snapshot.changes(table, since)),
      source: sourceAt(tables, transaction, () => Promise.resolve()),
    };
  }

  return {
    next,
    async close() {
      before?.close();
      present?.close();
      before = null;
      present = null;
      if (isOpen) await snapshots.close();
      isOpen = false;
    },
  };
}

function metaIn({ tables, transaction }: Snapshot): TrailMeta {
  const meta = trailMeta((key) => tables.meta.get(key, { transaction }));
  if (!meta.has('network')) throw new DamagedState('it does not say whose it is');
  return meta;
}

/**
 * The revoked ids of imported feeds. Each import is one subject, stored in one of its issuer's slots. An import
 * frees its slot once later imports name all of its ids, so a feed that only grows needs two slots.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { RevocationImport } from '../../../machines/revocation-feed.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { Subject } from '../subjects/kinds.ts';
import type { ImportLayer, RecognitionIndex } from './recognition-index.ts';

export type ImportedFeeds = ReturnType<typeof createImportedFeeds>;

interface Slots {
  next: number;
  /** The indexing that is in progress: imports of one issuer are indexed one after another. */
  underWay: Promise<void> | null;
  /** Imports by slot. */
  readonly held: Map<string, ImportLayer>;
}

export function createImportedFeeds(index: RecognitionIndex, changed: () => void) {
  const slotsByIssuer = new Map<string, Slots>();
  /** Loaded imports by slot: while loading, a later import may replace one in the same slot. */
  let loaded: Map<string, RevocationImport> | null = new Map();

  function slotsOf(issuer: string): Slots {
    const known = slotsByIssuer.get(issuer) ?? { next: 0, underWay: null, held: new Map() };
    slotsByIssuer.set(issuer, known);
    return known;
  }

  function begin(slot: string, { issuer, ...about }: RevocationImport): ImportLayer {
    const layer = index.beginImport({ issuer, ...about });
    slotsOf(issuer).held.set(slot, layer);
    return layer;
  }

  function end(layer: ImportLayer): void {
    index.endImport(layer);
    changed();
  }

  async function absorbSlices(layer: ImportLayer, rows: readonly string[]): Promise<void> {
    for (const slice of rows) {
      index.absorb(layer, rowsIn(slice));
      await nextTurn();
    }
    end(layer);
  }

  return {
    /** The id under which the issuer's next import is stored. */
    takeSlot(issuer: string): string {
      const slots = slotsOf(issuer);
      for (const [slot, layer] of slots.held) {
        if (!layer.isVisible || layer.owned > 0) continue;
        slots.held.delete(slot);
        return slot;
      }
      const slot = `${sha256Hex(issuer)}.${slots.next}`;
      slots.next += 1;
      return slot;
    },
    /** Indexes an import; returns a promise if it is long. All of its ids become revoked at the same moment. */
    absorb(slot: string, stored: RevocationImport): Promise<void> | undefined {
      const layer = begin(slot, stored);
      const slots = slotsOf(stored.issuer);
      if (slots.underWay === null && stored.rows.length <= 1) {
        for (const slice of stored.rows) index.absorb(layer, rowsIn(slice));
        end(layer);
        return undefined;
      }
      const before = slots.underWay ?? Promise.resolve();
      const current = before
        .then(() => absorbSlices(layer, stored.rows))
        .finally(() => {
          if (slots.underWay === current) slots.underWay = null;
        });
      slots.underWay = current;
      return current;
    },
    /** Loads an import from the store. */
    load(slot: string, { context }: Subject<'revocation-import'>) {
      loaded?.set(slot, context);
    },
    /** Indexes the loaded imports. Call before anything is decided. */
    endLoading() {
      for (const [slot, stored] of [...(loaded ?? [])].sort(bySlot)) {
        const slots = slotsOf(stored.issuer);
        slots.next = Math.max(slots.next, Number(slot.slice(slot.indexOf('.') + 1)) + 1);
        const layer = begin(slot, stored);
        for (const slice of stored.rows) index.absorb(layer, rowsIn(slice));
        end(layer);
      }
      loaded = null;
    },
  };
}

function bySlot([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function rowsIn(slice: string): readonly (readonly [string, string | null])[] {
  return JSON.parse(slice);
}

/** Table `meta`: the metadata of a state, one value per row. */
import type { NetworkIdentity } from './network-identity.ts';
import { decodeRow, encodeRow, NOTHING, type Totals } from './rows.ts';
import { createShapes, type Shape, type Shapes } from './shapes.ts';
import type { TimeRange } from './store.ts';
import { keptRow, type TableChange, type TableReader } from './tables.ts';

export interface MetaValues {
  readonly network: NetworkIdentity | null;
  /** 1 plus the number of restores that led to the state. */
  readonly epoch: number;
  readonly shapes: readonly Shape[];
  readonly forgotten_times: readonly TimeRange[];
  readonly unstored_times: readonly TimeRange[];
  readonly totals: Totals;
  /** The place the state was moved to; null if it was not moved. */
  readonly moved: string | null;
  /** Whose state is being moved here; null if there is none. */
  readonly arriving: { readonly network: NetworkIdentity } | null;
}

/** The values of absent rows. */
const ABSENT: MetaValues = {
  network: null,
  epoch: 1,
  shapes: [],
  forgotten_times: [],
  unstored_times: [],
  totals: NOTHING,
  moved: null,
  arriving: null,
};

/** The rows as they are stored. */
export type MetaRows = ReadonlyMap<string, Buffer>;

export async function readMeta(tables: TableReader): Promise<MetaRows> {
  const meta = new Map<string, Buffer>();
  for await (const rows of tables.scan('meta', keptRow)) {
    for (const { key, row } of rows) meta.set(key as string, row);
  }
  return meta;
}

export function metaValue<Key extends keyof MetaValues>(
  meta: Pick<MetaRows, 'get'>,
  key: Key,
): MetaValues[Key] {
  const row = meta.get(key);
  return row === undefined ? ABSENT[key] : (decodeRow('meta', key, row) as MetaValues[Key]);
}

export function shapesIn(meta: Pick<MetaRows, 'get'>): Shapes {
  return createShapes(metaValue(meta, 'shapes'));
}

export function encodeMeta<Key extends keyof MetaValues>(key: Key, value: MetaValues[Key]): Buffer {
  return encodeRow('meta', key, value);
}

/** Values to be stored. */
export function metaChange(values: Partial<MetaValues>): TableChange {
  const put = Object.entries(values).map(([key, value]) => {
    return { key, version: 0, row: encodeRow('meta', key, value) };
  });
  return { table: 'meta', put };
}

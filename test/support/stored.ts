/** Reads the entire content of a store. */
import type { Store, StoreContents } from '../../src/store/store.ts';

export async function loadAll(store: Store) {
  const contents: StoreContents = await store.load();
  return {
    ...contents,
    subjects: await allOf(contents.subjects),
    nonces: await allOf(contents.nonces),
    answers: await allOf(contents.answers),
    liveness: await allOf(contents.liveness),
  };
}

export async function allOf<Row>(batches: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const batch of batches) rows.push(...batch);
  return rows;
}

/** The rows of a store, all in one batch. */
export async function* inOneBatch<Row>(rows: readonly Row[]): AsyncIterable<readonly Row[]> {
  yield rows;
}

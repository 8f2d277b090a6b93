/** The history of the service, in memory and in the store [core-4-22]. */

import { JsonText, jsonText, type Writable } from '../../base/json/write.ts';
import type { HistoryPart, HistoryQuestion } from '../../protocol/rows/history.ts';
import type { Store } from '../../store/store.ts';
import { Sliced, type SliceQueue } from '../subjects/sliced.ts';
import { createHistoryRing } from './ring.ts';

export interface KeptHistory {
  /** Adds what an instance counted in one minute, unless it was added before; resolves when it is stored. */
  add(part: HistoryPart): Promise<void>;
  /** `run` runs a long query in slices. */
  read(question: HistoryQuestion, run: SliceQueue['run']): Promise<Writable>;
}

/** Answers stay the same until something is added, so that many readers cost as much as one. */
const MOST_ANSWERS = 64;

/** The rows are read when they are first needed, because a change of the active instance must not wait for them. */
export function keepHistory(store: Pick<Store, 'history' | 'putHistory'>): KeptHistory {
  const ring = createHistoryRing();
  const answers = new Map<string, Promise<Writable>>();
  let loading: Promise<void> | null = null;

  async function load(): Promise<void> {
    for await (const rows of store.history()) for (const row of rows) ring.put(row);
  }

  async function loaded(): Promise<void> {
    loading ??= load();
    try {
      await loading;
    } catch (cause) {
      loading = null;
      throw cause;
    }
  }

  return {
    async add(part) {
      await loaded();
      const rows = ring.add(part);
      answers.clear();
      if (rows.length > 0) await store.putHistory(rows);
    },
    async read(question, run) {
      await loaded();
      const key = JSON.stringify(question);
      const known = answers.get(key);
      if (known !== undefined) return known;
      const answer = run(new Sliced(answerTo(question)));
      if (answers.size >= MOST_ANSWERS) answers.clear();
      answers.set(key, answer);
      answer.catch(() => answers.delete(key));
      return answer;
    },
  };

  function* answerTo(question: HistoryQuestion): Generator<void, Writable> {
    return new JsonText(jsonText(yield* ring.read(question)));
  }
}

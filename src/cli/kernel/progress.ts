/** Shows progress on a terminal when a command takes longer than a second. */
import { clearLine, cursorTo } from 'node:readline';
import { systemRuntime } from '../../base/runtime.ts';

const PATIENCE_MS = 1000;
/** The number of items between looks at the clock. */
const ITEMS_BETWEEN = 1000;

/** Shows progress while asynchronous work is pending. */
export async function whileWaiting<T>(what: string, work: () => Promise<T>): Promise<T> {
  const line = progressLine(what);
  const timer = setInterval(line.show, PATIENCE_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    line.clear();
  }
}

/** Passes items through and shows their number, because a busy loop may starve timers. */
export async function* counted<T>(what: string, items: AsyncIterable<T>): AsyncGenerator<T, void> {
  async function* single() {
    for await (const item of items) yield [item];
  }
  for await (const [item] of countedParts(what, single())) yield item as T;
}

/** The same for items that arrive in groups. */
export async function* countedParts<T>(
  what: string,
  parts: AsyncIterable<readonly T[]>,
): AsyncGenerator<readonly T[], void> {
  const line = progressLine(what);
  let count = 0;
  let shown = 0;
  try {
    for await (const part of parts) {
      count += part.length;
      if (count >= shown + ITEMS_BETWEEN) {
        shown = count;
        line.show(count);
      }
      yield part;
    }
  } finally {
    line.clear();
  }
}

function progressLine(what: string) {
  const { stderr } = process;
  const begun = systemRuntime.elapsed();
  let shownAt = begun;
  return {
    show(count?: number): void {
      const now = systemRuntime.elapsed();
      // A timer may fire a little early.
      if (!stderr.isTTY || now - shownAt < PATIENCE_MS * 0.9) return;
      shownAt = now;
      const done = count === undefined ? '' : `${count} `;
      erase();
      stderr.write(`${what} ${done}(${Math.round((now - begun) / 1000)} s)`);
    },
    clear(): void {
      if (shownAt !== begun) erase();
    },
  };

  function erase(): void {
    cursorTo(stderr, 0);
    clearLine(stderr, 0);
  }
}

/**
 * Once a minute, reads what this instance has counted since the last time from its metrics, and gives it to the active instance.
 * What the active instance does not take is given again, so that nothing is missing after a change of the active instance.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../base/log/logger.ts';
import { problemText } from '../base/log/problem.ts';
import type { MetricsReport } from '../edge/metrics.ts';
import type { Answer } from '../protocol/contract/answers.ts';
import { mergeCells, placeOf } from '../protocol/contract/history-cells.ts';
import type { HistoryPart, SeriesName } from '../protocol/rows/history.ts';
import { cellsIn } from './metrics/history-cells.ts';
import type { AuthorityCounts } from './metrics/state.ts';

export interface HistoryRecorderOptions {
  /** Identifies this process among those of the last days. */
  readonly source: number;
  now(): number;
  /** The metrics of this instance so far. */
  reports(): Promise<readonly MetricsReport[]>;
  /** Answers `AuthorityCounts`, if this instance is active. */
  counts(): Promise<Answer>;
  /** Bytes; null if not known. */
  diskFree(): number | null;
  record(part: HistoryPart): Answer | Promise<Answer>;
  readonly logger: Logger;
}

const MINUTE_MS = 60_000;
/** How many parts are kept while no active instance takes them. */
const MOST_WAITING = 60;
/** How long a part may delay the end of the process. */
const PATIENCE_MS = 1000;
/** How often the delay of the event loop is measured. */
const LOOP_RESOLUTION_MS = 50;

export function createHistoryRecorder(options: HistoryRecorderOptions) {
  const { source, now, logger } = options;
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  let minute = minuteAt(now());
  let counted: readonly number[] = [];
  let number = 0;
  let waiting: HistoryPart[] = [];
  let giving: Promise<void> | null = null;

  async function take(): Promise<HistoryPart> {
    const measured = await levels(options, loop);
    const all = cellsIn(await options.reports());
    const cells = all.map((count, i) => count - (counted[i] ?? 0));
    counted = all;
    for (const [name, value] of measured) {
      const { start } = placeOf(name);
      mergeCells(cells, [...new Array<number>(start), 1, value, value], start, start + 3);
    }
    number += 1;
    return { source, number, minute, cells };
  }

  async function give(): Promise<void> {
    for (let part = waiting[0]; part !== undefined; part = waiting[0]) {
      const answer = await options.record(part);
      if (!answer.ok) return;
      waiting = waiting.filter((other) => other !== part);
    }
  }

  function noteFailure(cause: unknown): void {
    logger.write('ERROR', 'history', `A minute could not be recorded: ${problemText(cause)}`);
  }

  async function recordNow(): Promise<void> {
    waiting = [...waiting, await take()].slice(-MOST_WAITING);
    giving ??= give()
      .catch(noteFailure)
      .finally(() => {
        giving = null;
      });
    await Promise.race([giving, delay(PATIENCE_MS, undefined, { ref: false })]);
  }

  return {
    /** Records a minute that has ended; call it about once a second. */
    async check(): Promise<void> {
      const current = minuteAt(now());
      if (current === minute) return;
      await recordNow();
      minute = current;
    },
    /** Records the minute that has not ended. */
    async finish(): Promise<void> {
      loop.disable();
      await recordNow().catch(noteFailure);
    },
  };
}

/** What is known at the moment, and measured rather than counted. */
async function levels(
  { counts: ask, diskFree }: HistoryRecorderOptions,
  loop: IntervalHistogram,
): Promise<[SeriesName, number][]> {
  const answer = await ask();
  const counts = answer.ok ? (JSON.parse(answer.json) as AuthorityCounts) : null;
  const found: [SeriesName, number | null | undefined][] = [
    ['active_nodes', counts?.active_nodes],
    ['silent_nodes', counts?.nodes.silent],
    ['unhealthy_nodes', counts?.nodes.unwell],
    ['certificates', counts?.issued_certificates],
    ['crl_length', counts?.revoked_certificates],
    ['memory', process.memoryUsage.rss()],
    ['event_loop_delay', longestDelay(loop)],
    ['disk_free', diskFree()],
  ];
  return found.filter((level): level is [SeriesName, number] => Number.isFinite(level[1]));
}

/** Since it was asked last, in microseconds, beyond the interval between two measurements. */
function longestDelay(loop: IntervalHistogram): number {
  const longest = loop.max / 1000 - LOOP_RESOLUTION_MS * 1000;
  loop.reset();
  return Math.max(0, Math.round(longest));
}

function minuteAt(time: number): number {
  return Math.floor(time / MINUTE_MS);
}

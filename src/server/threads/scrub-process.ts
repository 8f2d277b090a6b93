/** Reads one part of the stored state in a process of its own. */
import type { NamedDatabase } from '../../store/open.ts';
import type { ScrubbedPart, ScrubPlace } from '../../store/scrub.ts';
import { runInChildProcess } from './apart.ts';

export interface ScrubTask {
  readonly dataDir: string;
  /** Null when the data folder holds the state. */
  readonly database: NamedDatabase | null;
  /** Null for the first part. */
  readonly from: ScrubPlace | null;
  /** Of this many parts, if no row were added. */
  readonly parts: number;
}

/** Rejects with one sentence when it fails for another reason than damage. */
export function scrubApart(task: ScrubTask, abort: AbortSignal): Promise<ScrubbedPart> {
  return runInChildProcess('scrub', task, abort);
}

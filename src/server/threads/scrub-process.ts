/** Reads one part of the stored state in a child process. */
import type { NamedDatabase } from '../../store/open.ts';
import type { ScrubbedPart, ScrubPlace } from '../../store/scrub.ts';
import { runInChildProcess } from './apart.ts';

export interface ScrubTask {
  readonly dataDir: string;
  /** Null if the data folder holds the state. */
  readonly database: NamedDatabase | null;
  /** Null for the first part. */
  readonly from: ScrubPlace | null;
  /** The number of parts that the state is divided into, not counting rows added meanwhile. */
  readonly parts: number;
}

/** Rejects with a one-sentence error if it fails for a reason other than damage. */
export function scrubApart(task: ScrubTask, abort: AbortSignal): Promise<ScrubbedPart> {
  return runInChildProcess('scrub', task, abort);
}

/**
 * Counts upcoming expirations by kind. Because every certificate, treaty and attestation is visited, the count runs in
 * slices, and its result is reused for a pause that is long enough to limit counting to a sixtieth of the time.
 */

import type { Runtime } from '../../base/runtime.ts';
import { createPauses } from '../../base/work.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { Subjects } from '../subjects/subjects.ts';
import { EndTally } from './end-tally.ts';

/** Upcoming expirations as of `asOf`, in milliseconds since the epoch. */
export interface CountedEnds {
  readonly asOf: number;
  readonly certificate: EndTally;
  readonly treaty: EndTally;
  readonly attestation: EndTally;
}

export type ExpiryCensus = ReturnType<typeof createExpiryCensus>;

export interface ExpiryCensusOptions {
  readonly subjects: Subjects;
  readonly now: Runtime['now'];
  readonly elapsed: Runtime['elapsed'];
}

const PAUSE_PER_COUNT = 60;
const RECORDS_PER_SLICE = 1000;

export function createExpiryCensus({ subjects, now, elapsed }: ExpiryCensusOptions) {
  let latest: CountedEnds | null = null;
  const pauses = createPauses(elapsed, { perWork: PAUSE_PER_COUNT });

  function* count(): Generator<void, CountedEnds> {
    const asOf = now();
    const ends = {
      asOf,
      certificate: new EndTally(asOf),
      treaty: new EndTally(asOf),
      attestation: new EndTally(asOf),
    };
    for (const block of subjects.certificateEnds()) {
      for (const end of block) ends.certificate.addIfAhead(end);
      yield;
    }
    let seen = 0;
    for (const [, { context }] of subjects.allCommitted('recognition-treaty')) {
      if (context.revokedAt === null) ends.treaty.addIfAhead(context.expiresAt);
      seen += 1;
      if (seen % RECORDS_PER_SLICE === 0) yield;
    }
    for (const [, { context }] of subjects.allCommitted('attestation')) {
      if (context.revokedAt === null) ends.attestation.addIfAhead(endOf(context.json));
      seen += 1;
      if (seen % RECORDS_PER_SLICE === 0) yield;
    }
    return ends;
  }

  return {
    /** Counts again if the last count is too old, yielding after each slice. */
    *take(): Generator<void, CountedEnds> {
      const started = elapsed();
      if (latest !== null && pauses.left() > 0) return latest;
      const counted = yield* count();
      latest = counted;
      pauses.after(started);
      return counted;
    },
    /** The last count; null before the first one. */
    get latest() {
      return latest;
    },
  };
}

const END_MEMBER = '"expires_at":"';

/**
 * The end of an attestation. Searching its canonical text takes a hundredth of the time of parsing it. This is
 * safe because no member after `expires_at` has free content, and quotes inside a string would be escaped.
 */
function endOf(json: string): number {
  const at = json.lastIndexOf(END_MEMBER) + END_MEMBER.length;
  return instantOf(json.slice(at, json.indexOf('"', at)));
}

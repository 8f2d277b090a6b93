/** Checks that events are the audit log without a gap and unaltered [events-4]. */
import { Value } from 'typebox/value';
import { parseJson } from '../base/json/parse.ts';
import { LoggedEntry } from '../protocol/answers/events.ts';
import { portableSha256 } from './sha256.ts';

/** A place in the audit log: the index of an entry, and its hash. */
export interface EventPlace {
  readonly index: number;
  /** Lower-case hex; 64 zeros before the first entry. */
  readonly hash: string;
}

/** An entry of the audit log, whose hash was checked. */
export interface LoggedEvent extends EventPlace {
  readonly entry: LoggedEntry;
}

export type EventProblem =
  /** It is not an event. */
  | 'malformed'
  /** Events before it are missing, or it came before. */
  | 'gap'
  /** It does not follow on the one before. */
  | 'broken_link'
  /** It is not what its hash covers. */
  | 'altered_entry';

/** What the authority sent is not its audit log. */
export class EventChainError extends Error {
  readonly problem: EventProblem;
  /** The event that was expected. */
  readonly index: number;

  constructor(problem: EventProblem, index: number) {
    super(`Event ${index} of the authority is refused: ${problem}`);
    this.name = 'EventChainError';
    this.problem = problem;
    this.index = index;
  }
}

export const BEFORE_FIRST: EventPlace = { index: 0, hash: '0'.repeat(64) };

const FORM = /^\{"entry":(\{.*\}),"hash":"([0-9a-f]{64})","index":([0-9]{1,16})\}$/s;

/** The event in a line, which has to follow on `last`; a null hash there is not known, and is not checked. */
export function nextEvent(
  line: string,
  last: { readonly index: number; readonly hash: string | null },
): LoggedEvent {
  const expected = last.index + 1;
  const refuse = (problem: EventProblem) => new EventChainError(problem, expected);
  const [, text = '', hash = '', index] = FORM.exec(line) ?? [];
  if (index === undefined) throw refuse('malformed');
  if (Number(index) !== expected) throw refuse('gap');
  if (portableSha256.hex(text) !== hash) throw refuse('altered_entry');
  const entry = entryIn(text);
  if (entry === null) throw refuse('malformed');
  if (last.hash !== null && entry.prev_hash !== last.hash) throw refuse('broken_link');
  return { index: expected, hash, entry };
}

function entryIn(text: string): LoggedEntry | null {
  try {
    const entry: unknown = parseJson(text);
    return Value.Check(LoggedEntry, entry) ? entry : null;
  } catch {
    return null;
  }
}

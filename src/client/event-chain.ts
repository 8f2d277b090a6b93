/** Checks that events form the audit log, unaltered and without gaps [events-4]. */
import { Value } from 'typebox/value';
import { LoggedEntry } from '../protocol/answers/events.ts';
import { parsed } from './received.ts';
import { portableSha256 } from './sha256.ts';

/** A position in the audit log: the index of an entry, and its hash. */
export interface EventPlace {
  readonly index: number;
  /** Lowercase hex; 64 zeros before the first entry. */
  readonly hash: string;
}

/** An audit log entry whose hash was verified. */
export interface LoggedEvent extends EventPlace {
  readonly entry: LoggedEntry;
}

export type EventProblem =
  /** The text is not an event. */
  | 'malformed'
  /** Earlier events are missing, or the event is a repeat. */
  | 'gap'
  /** The event does not continue the previous one. */
  | 'broken_link'
  /** The event does not match its hash. */
  | 'altered_entry';

/** The authority sent something other than its audit log. */
export class EventChainError extends Error {
  readonly problem: EventProblem;
  /** The index of the expected event. */
  readonly index: number;

  constructor(problem: EventProblem, index: number) {
    super(`Event ${index} from the authority is rejected: ${problem}`);
    this.name = 'EventChainError';
    this.problem = problem;
    this.index = index;
  }
}

export const BEFORE_FIRST: EventPlace = { index: 0, hash: '0'.repeat(64) };

const FORM = /^\{"entry":(\{.*\}),"hash":"([0-9a-f]{64})","index":([0-9]{1,16})\}$/s;

/** Parses the text of an event, which must continue `last`; a null hash in `last` is unknown and not checked. */
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
  const entry = parsed(text);
  return Value.Check(LoggedEntry, entry) ? entry : null;
}

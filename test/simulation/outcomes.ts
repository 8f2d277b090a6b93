/** Compares what was stored and answered with the ways in which a request may end. */
import { isDeepStrictEqual } from 'node:util';
import type { Unit } from '../../src/store/store.ts';
import type { Reply } from './authority-calls.ts';
import type { InFlight } from './memory-store.ts';
import type { Made, Outcome } from './model/state.ts';

/** This is also the only change during which nothing else is decided. */
export function isKeyChange({ unit }: InFlight): boolean {
  const kinds = unit?.subjects.map(({ kind }) => kind) ?? [];
  return kinds.includes('authority-key') && kinds.includes('crl');
}

export function fits({ refusal, answer }: Outcome, reply: Reply, made: Made): boolean {
  if (!reply.ok) return reply.refusal === refusal;
  if (refusal !== null) return false;
  const value = reply.value as { readonly [member: string]: unknown };
  return Object.entries(answer(made)).every(([name, wanted]) =>
    isDeepStrictEqual(value[name], wanted),
  );
}

/** Whether this outcome matches what was stored, or what was answered immediately. */
export function isConsistent(
  { refusal, change, changesSigners }: Outcome,
  write: InFlight | null,
  reply: Reply | Promise<Reply>,
): boolean {
  if ((changesSigners === true) !== (write !== null && isKeyChange(write))) return false;
  const unit = write?.unit ?? null;
  if (change !== null) return unit !== null && unit.subjects.length + unit.nonces.length > 0;
  if (!(reply instanceof Promise)) return reply.ok === (refusal === null);
  // The nonce of a genuine request may be stored even if the request is refused.
  return refusal === null || unit === null || unit.subjects.length === 0;
}

export function newIds(unit: Unit | null, kind: string): readonly string[] {
  if (unit === null) return [];
  return unit.subjects
    .filter((subject) => subject.kind === kind && subject.version === 1)
    .map(({ id }) => id);
}

export function titleOf({ refusal, change }: Outcome): string {
  return `${refusal ?? 'success'}${change === null ? '' : ', stored'}`;
}

export function storedTitle(write: InFlight | null, reply: Reply | Promise<Reply>): string {
  const unit = write?.unit ?? null;
  const names = unit?.subjects.map(({ kind, snapshot }) => `${kind} ${snapshot.value}`) ?? [];
  const answer = reply instanceof Promise ? 'later' : JSON.stringify(reply);
  return `stored [${names.join(', ')}], ${unit?.nonces.length ?? 0} nonces; answered ${answer}`;
}

/**
 * Whether it only counts earlier refusals: the authority writes such summaries on its own, even after waiting for the
 * same change.
 */
export function isSummary({ unit }: InFlight): boolean {
  const events = unit?.audit.map(({ entry }) => entry.event_type) ?? [];
  return events.length > 0 && events.every((event) => event === 'refusals_summarized');
}

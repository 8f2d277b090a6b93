/** Runs each row of a state table. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AnyStateMachine } from 'xstate';
import { type Resting, step } from '../../machines/step.ts';

interface Event {
  readonly type: string;
  readonly [field: string]: unknown;
}

/**
 * One row of a state table: what it says, the subject before, the event, and what the machine emits, where a refusal is
 * its name, or `name: audit reason`. If the subject changes, the new state with the facts that change comes last.
 */
export type Row = readonly [
  name: string,
  from: Resting | undefined,
  event: Event,
  emits: string,
  to?: { readonly [state: string]: object } | undefined,
];

/** A subject that does not exist yet. */
export const absent = undefined;

type Answered = readonly [name: string, event: Event, emits: string, to?: Row[4]];

/** The rows in each of these states, with the state in front of their names. */
export function inEach(
  states: readonly (Resting | undefined)[],
  ...rows: readonly Answered[]
): readonly Row[] {
  return states.flatMap((from) =>
    rows.map(([name, ...rest]): Row => [`${from?.value ?? 'absent'}, ${name}`, from, ...rest]),
  );
}

export const NOW = Date.UTC(2026, 2, 1, 10);
export const HOUR = 3_600_000;

/** How often the tables below have each event in each state: `machine state event`. */
export const rowsOf = new Map<string, number>();
export const tested = new Set<AnyStateMachine>();

export function testTable(machine: AnyStateMachine, rows: readonly Row[]): void {
  tested.add(machine);
  for (const [, from, event] of rows) {
    const taken = `${machine.id} ${from?.value ?? 'absent'} ${event.type}`;
    rowsOf.set(taken, (rowsOf.get(taken) ?? 0) + 1);
  }
  test(`${machine.id}: each row of its table`, () => {
    for (const row of rows) checkRow(machine, row);
  });
}

function checkRow(machine: AnyStateMachine, [row, from, event, emits, to]: Row): void {
  const before = structuredClone(from);
  const { next, emitted, changed } = step(machine, from, event);
  assert.deepEqual(from, before, `${row}: the subject at rest is not written to`);
  const [[state, facts] = [from?.value ?? 'absent', {}], ...others] = Object.entries(to ?? {});
  assert.deepEqual(others, []);
  const isAbsent = from === undefined && to === undefined;
  const context = isAbsent ? next.context : { ...from?.context, ...facts };
  assert.deepEqual(
    { row, emits: emitted.map(plainly), changed, state: next.value, context: next.context },
    { row, emits: emits === '' ? [] : [emits], changed: to !== undefined, state, context },
  );
  if (changed) assert.deepEqual(structuredClone(next.context), context, 'plain data');
}

/** A refusal has a name, and nothing else but the reason. */
function plainly(event: object): string {
  const { type, refusal, reason, ...rest } = event as Record<string, unknown>;
  if (type !== 'refused') return String(type);
  assert.deepEqual(rest, {});
  return reason === undefined ? String(refusal) : `${refusal}: ${reason}`;
}

export function testUnhandled(
  machine: AnyStateMachine,
  cases: readonly (readonly [string, Resting | undefined, Event])[],
): void {
  test(`${machine.id}: an event without a branch is a programming error and throws`, () => {
    for (const [name, from, event] of cases) {
      const state = from?.value ?? 'absent';
      const message = `${machine.id} in state ${state} does not accept ${event.type}`;
      assert.throws(() => step(machine, from, event), { message }, name);
    }
  });
}

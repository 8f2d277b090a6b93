/** Runs each row of a state table as a test. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AnyStateMachine } from 'xstate';
import { type Resting, step } from '../../machines/step.ts';

/** One row of a state table: the effect of an event on a subject in a given state. */
export interface Row {
  readonly name: string;
  readonly from?: Resting;
  readonly event: { readonly type: string; readonly [field: string]: unknown };
  /** What the machine emits; a refusal is written as its name, or as name and audit reason. */
  readonly emits: readonly (string | { readonly refusal: string; readonly reason?: string })[];
  /** The new state and the facts that change; absent if the event does not change the subject. */
  readonly to?: { readonly value: string; readonly facts: object };
}

export const NOW = Date.UTC(2026, 2, 1, 10);
export const HOUR = 3_600_000;

/** How often the tables below have each event in each state: `machine state event`. */
export const rowsOf = new Map<string, number>();
export const tested = new Set<AnyStateMachine>();

export function testTable(machine: AnyStateMachine, rows: readonly Row[]): void {
  tested.add(machine);
  for (const { from, event } of rows) {
    const taken = `${machine.id} ${from?.value ?? 'absent'} ${event.type}`;
    rowsOf.set(taken, (rowsOf.get(taken) ?? 0) + 1);
  }
  for (const { name, from, event, emits, to } of rows) {
    test(`${machine.id}: ${name}`, () => {
      const before = structuredClone(from);
      const { next, emitted, changed } = step(machine, from, event);
      assert.deepEqual(emitted.map(plainly), emits);
      assert.deepEqual(from, before, 'the subject at rest is not written to');
      assert.equal(changed, to !== undefined);
      if (to === undefined) {
        assert.equal(next.value, from?.value ?? 'absent');
        if (from !== undefined) assert.deepEqual(next.context, from.context);
      } else {
        assert.equal(next.value, to.value);
        assert.deepEqual(next.context, { ...from?.context, ...to.facts });
        assert.deepEqual(structuredClone(next.context), next.context, 'the context is plain data');
      }
    });
  }
}

function plainly(event: object): string | object {
  const { type, ...rest } = event as { type: string; refusal?: string; reason?: string };
  if (type !== 'refused') return type;
  return rest.reason === undefined ? String(rest.refusal) : rest;
}

export function testUnhandled(
  machine: AnyStateMachine,
  cases: readonly (readonly [string, Resting | undefined, Row['event']])[],
): void {
  for (const [name, from, event] of cases) {
    test(`${machine.id}: ${name} is a programming error and throws`, () => {
      assert.throws(() => step(machine, from, event), {
        message: `${machine.id} in state ${from?.value ?? 'absent'} does not accept ${event.type}`,
      });
    });
  }
}

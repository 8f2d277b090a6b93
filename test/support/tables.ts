/** Tables of cases by the result that each must have, and faults of one request or record in the order of their checks. */
import assert from 'node:assert/strict';
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import type { Change } from './trust-protocol.ts';

export type Cases<Case> = { readonly [name: string]: Case };
export type Table<Case = JsonObject> = { readonly [expected: string]: Cases<Case> };

/** Compares the result of every case with the one it stands under, and reports all that differ. */
export async function checkTable<Case>(
  table: Table<Case>,
  resultOf: (given: Case) => string | Promise<string>,
): Promise<void> {
  const wrong = new Map<string, string>();
  for (const [expected, cases] of Object.entries(table)) {
    for (const [name, given] of Object.entries(cases)) {
      const result = await resultOf(given);
      if (result !== expected) wrong.set(name, `${result}, not ${expected}`);
    }
  }
  assert.deepEqual(wrong, new Map());
}

/** An expected answer, and the change of a case that causes it; absent members change nothing. */
export type Fault<Draft extends object> = readonly [expected: string, spoil: Draft];

/**
 * Each fault alone, with each later one, and with all later ones: the earliest is reported. Faults of the same member
 * cannot be combined; the earlier one is then applied.
 */
export async function checkFaults<Draft extends object>(
  faults: readonly Fault<Draft>[],
  resultOf: (draft: Draft) => string | Promise<string>,
): Promise<void> {
  for (const [index, [expected, spoil]] of faults.entries()) {
    const check = async (where: string, draft: Draft) =>
      assert.equal(await resultOf(draft), expected, `${expected}, ${where}`);
    const later = faults.slice(index + 1);
    await check('alone', spoil);
    for (const [other, also] of later) await check(`before ${other}`, { ...also, ...spoil });
    const others = later.map(([, other]) => other).toReversed();
    await check('before all others', Object.assign({}, ...others, spoil));
  }
}

/**
 * For faults that cannot be written as one object: each fault alone, with the next one, and with all later ones, which
 * are applied first.
 */
export async function checkChanges(
  faults: readonly (readonly [expected: string, change: Change])[],
  body: JsonObject,
  resultOf: (body: JsonObject) => string | Promise<string>,
): Promise<void> {
  for (const [index, [expected]] of faults.entries()) {
    for (const end of [index + 1, index + 2, faults.length]) {
      const changes = faults.slice(index, end).map(([, change]) => change);
      const spoilt = changes.reduceRight((given, change) => change(given), body);
      assert.equal(await resultOf(spoilt), expected, `with ${changes.length} faults`);
    }
  }
}

/** A case for each value of the member. */
export function inEach(
  member: string,
  values: readonly (readonly [name: string, value: JsonValue])[],
): Cases<JsonObject> {
  return Object.fromEntries(
    values.map(([name, value]) => [`${member} is ${name}`, { [member]: value }]),
  );
}

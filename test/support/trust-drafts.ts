/** Random content for records: values of any kind, and records that are like an example. */
import fc from 'fast-check';
import {
  isJsonObject,
  JsonFloat,
  type JsonObject,
  type JsonValue,
} from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { anyText } from './any-text.ts';
import { newKey } from './requests.ts';

export const NOW = Date.UTC(2026, 0, 15, 12);
/** Later than any test; there are two, so that one can be replaced by the other. */
export const FAR = ['2098-01-01T00:00:00Z', '2098-01-01T00:00:00.000001Z'] as const;
export const SIGNER = newKey();
export const STRANGER = newKey();
export const OWN_KEY = [SIGNER.publicKey];

export const text = fc.oneof(
  anyText({ maxLength: 10 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 10 }),
  fc.constantFrom('', 'read', '\ue000', '\u{1f600}', '__proto__', '\u007f\u2028"\\'),
  // These are datetimes only in a datetime member; anywhere else, they are text.
  fc.constantFrom('2026-01-15T12:00:00+00:00', '2026-01-15 12:00:00.500Z'),
);
const count = fc.nat({ max: Number.MAX_SAFE_INTEGER - 1 });
/** The beginnings of windows, and their ends. */
const soon = fc
  .integer({ min: 1, max: 1_000_000_000_000 })
  .map((micros) => formatInstant(NOW + micros / 1000));
const late = fc.constantFrom('2099-12-31T23:59:59+02:00', '2099-12-31T23:59:59.999999-11:30');

const scalar: fc.Arbitrary<JsonValue> = fc.oneof(
  text,
  fc.boolean(),
  fc.constant(null),
  fc.integer(),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => new JsonFloat(value)),
);
export const { json } = fc.letrec<{ json: JsonValue }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(text, tie('json'), { maxKeys: 3 }),
  ),
}));
const freeForm: fc.Arbitrary<JsonObject> = fc.dictionary(text, json, { maxKeys: 3 });

/** Members of any content: everything below them is part of the record. */
const FREE = new Set([
  ...['metadata', 'claims', 'inputs', 'offerer_evidence', 'responder_evidence'],
  ...['signals', 'revocation_reasons'],
]);
/** Members of which only some values are valid, or only together with others. */
const FIXED = /^(status|verdict|accepted_statuses|revoked_attestation_ids|revocation_reasons)$/;
const DATETIME = /_(at|from|until)$/;
const END = /^(expires_at|valid_until)$/;

type Path = readonly (string | number)[];

export function isBelowFree(path: Path): boolean {
  // The scope of terms is free-form, but not that of a treaty.
  return path.some((step, at) => FREE.has(String(step)) || (step === 'scope' && at > 0));
}

export function isDatetime(path: Path): boolean {
  const name = String(path.at(-1));
  return DATETIME.test(name) && (name !== 'evaluated_at' || path.length > 1);
}

/** Records with the members of the example, and other values of the same kinds. */
export function recordsLike(example: JsonObject, path: Path = []): fc.Arbitrary<JsonObject> {
  const members = Object.entries(example).map(([name, value]) => {
    return [name, valueLike(value, [...path, name])] as const;
  });
  return fc.record(Object.fromEntries(members));
}

function valueLike(example: JsonValue, path: Path): fc.Arbitrary<JsonValue> {
  const name = String(path.at(-1));
  if (FIXED.test(name) || example === null) return fc.constant(example);
  if (isJsonObject(example)) {
    // The members of signals may be any, but only texts.
    const isFree = isBelowFree(path) && !path.includes('signals');
    return isFree ? freeForm : recordsLike(example, path);
  }
  if (Array.isArray(example)) return listLike(example, path);
  if (typeof example === 'boolean') return fc.boolean();
  if (typeof example === 'number') {
    return name === 'port' ? fc.integer({ min: 1, max: 65_534 }) : count;
  }
  if (typeof example !== 'string' || !isDatetime(path)) return text;
  return END.test(name) ? late : soon;
}

function listLike([first]: readonly JsonValue[], path: Path): fc.Arbitrary<JsonValue> {
  if (first === undefined || typeof first === 'string') {
    return fc.array(text, { minLength: 1, maxLength: 4 });
  }
  return fc.array(valueLike(first, [...path, 0]), { minLength: 1, maxLength: 3 });
}

/** Fields of forms, as the schemas of members say; what is wrong with one becomes a sentence for the operator. */
import { Value } from 'typebox/value';
import { parseJson } from '../base/json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json/value.ts';
import { isLabel, labelsIn } from '../protocol/rows/node-description.ts';
import { type Field, FormProblem } from './action.ts';

/** What a schema does not say of the field for a member. */
export interface AskedField extends Pick<Field, 'hint' | 'isRequired' | 'label'> {
  readonly kind?: Field['kind'];
  /** The texts of the choices, in their order; by default the words of the schema. */
  readonly choices?: Readonly<Record<string, string>>;
  /** What a number counts, or an item of a list is, such as `hops` or `port`. */
  readonly what?: string;
  /** The highest number, if the schema has none. */
  readonly most?: number;
  /** A text that says the same as none. */
  readonly none?: string;
  /** Said of a text that does not fit, instead of what the authority would say. */
  readonly problem?: string;
}

/** What a form uses of a schema. */
export interface Shape {
  readonly type?: string;
  readonly default?: JsonValue;
  readonly described?: Shape;
  readonly enum?: readonly string[];
  readonly items?: Shape;
  readonly maximum?: number;
  readonly patternProperties?: object;
  readonly properties?: Readonly<Record<string, Shape>>;
}

export function fieldFor(
  name: string,
  { label, hint, isRequired = false, ...asked }: AskedField,
  shape: Shape,
  isNeeded: boolean,
): Field {
  const words = shape.enum?.map((word) => [word, word] as const);
  const choices = asked.choices === undefined ? words : Object.entries(asked.choices);
  const isDefaulted = shape.type === 'integer' && shape.default !== undefined && !isRequired;
  const shownHint = hint ?? (isDefaulted ? `Empty for ${String(shape.default)}.` : undefined);
  return {
    name,
    label,
    kind: asked.kind ?? kindFor(shape),
    isRequired: isRequired || isNeeded,
    ...(shownHint !== undefined && { hint: shownHint }),
    ...(choices !== undefined && { choices }),
  };
}

function kindFor({ type, enum: words, patternProperties }: Shape): Field['kind'] {
  if (words !== undefined) return 'select';
  if (type === 'integer') return 'number';
  if (type === 'array' || patternProperties !== undefined) return 'lines';
  return type === 'object' ? 'pasted' : 'text';
}

/** Undefined if the field is empty. */
export function valueIn(
  form: URLSearchParams,
  { name, label, kind }: Field,
  asked: AskedField,
  shape: Shape,
): JsonValue | undefined {
  const text = textIn(form, name);
  if (shape.enum !== undefined) {
    if (shape.enum.includes(text)) return text;
    throw new FormProblem(`Choose a ${label.toLowerCase()}.`);
  }
  if (shape.items !== undefined) {
    const items = itemsOf(text, kind === 'text' ? /[\s,]+/ : '\n');
    // An empty field must not mean what the authority uses otherwise.
    const isMeant = Array.isArray(shape.default) && shape.default.length > 0;
    if (items.length === 0 && !isMeant) return undefined;
    return items.map((item) => (shape.items?.type === 'integer' ? numberIn(item, asked) : item));
  }
  if (text === '' || text === asked.none) return undefined;
  if (shape.patternProperties !== undefined) return labelsFrom(text);
  if (shape.type === 'object') return pastedObject(form, name, label);
  if (shape.type === 'integer') return wholeNumber(text, label, asked.what, shape.maximum);
  if (asked.problem !== undefined && !Value.Check(shape, text)) {
    throw new FormProblem(asked.problem);
  }
  return text;
}

function itemsOf(text: string, separator: string | RegExp): string[] {
  const items = text.split(separator).map((item) => item.trim());
  return items.filter((item) => item !== '');
}

function numberIn(item: string, { what = 'number', most = Number.MAX_SAFE_INTEGER }: AskedField) {
  const number = Number(item);
  if (/^\d{1,15}$/.test(item) && number >= 1 && number <= most) return number;
  throw new FormProblem(`${item} is not a ${what}: a number from 1 to ${most}.`);
}

function wholeNumber(text: string, label: string, what?: string, most = 9_999_999): number {
  const name = what === undefined ? `“${label}”` : `The number of ${what}`;
  if (!/^[1-9]\d*$/.test(text)) {
    throw new FormProblem(`${name} must be a whole number, 1 or more.`);
  }
  if (Number(text) <= most) return Number(text);
  throw new FormProblem(
    what === undefined ? `${name} must be at most ${most}.` : `At most ${most} ${what} at a time.`,
  );
}

/** Labels from lines of `key=value`. */
function labelsFrom(text: string): Readonly<Record<string, string>> {
  const lines = itemsOf(text, '\n');
  const wrong = lines.find((line) => !line.includes('=', 1) || !isLabel(line));
  if (wrong === undefined) return labelsIn(lines);
  throw new FormProblem(
    `“${wrong}” is not a label: write key=value, with 1 to 63 of a-z 0-9 . _ / - in the key.`,
  );
}

export function textIn(form: URLSearchParams, name: string): string {
  return (form.get(name) ?? '').trim();
}

/** The JSON object that was pasted; numbers stay as they were written, so that signatures stay valid. */
export function pastedObject(form: URLSearchParams, name: string, label: string): JsonObject {
  const noun = label.charAt(0).toLowerCase() + label.slice(1);
  const what = noun.startsWith('its ') ? noun : `the ${noun}`;
  let value: JsonValue;
  try {
    value = parseJson(textIn(form, name));
  } catch {
    throw new FormProblem(`Paste the JSON text of ${what}; this is not JSON.`);
  }
  if (!isJsonObject(value)) throw new FormProblem(`Paste the JSON object of ${what}.`);
  return value;
}

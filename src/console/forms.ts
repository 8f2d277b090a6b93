/**
 * Forms of actions: fields as the schemas of members say, what is wrong with one as a sentence for the operator, and the
 * form as it is first shown and as it was filled in.
 */
import { Value } from 'typebox/value';
import { DAY_MS, HOUR_MS } from '../base/duration.ts';
import { parseJson } from '../base/json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json/value.ts';
import { type Content, type Html, html, NO_HTML } from '../pages/ui/html.ts';
import { options } from '../pages/ui/parts.ts';
import type { Column } from '../pages/ui/table.ts';
import { instantOf } from '../protocol/records/record.ts';
import { isLabel, labelsIn } from '../protocol/rows/node-description.ts';
import type { Context } from './context.ts';
import { type Action, type Field, FormProblem, isOffered } from './page.ts';

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

/** `values` are filled in, also for fields that are hidden. A form that is the whole page begins with the focus. */
export function actionForm(action: Action, values: URLSearchParams, isWholePage = false): Html {
  const first = action.fields.find(
    ({ name, kind }) => kind !== 'hidden' && !(kind === 'id' && values.has(name)),
  );
  return html`<form class="ask" method="post" action="./do?action=${action.name}" data-changes>
${action.fields.map((field) => fieldOf(action.name, field, values.get(field.name) ?? '', isWholePage && field === first))}<p class="field"><button${action.isDestructive ? html` class="danger"` : NO_HTML} type="submit">${action.label}…</button></p>
</form>`;
}

/** Leads to the form with these values; or, if they fill it completely, directly to what would be signed. */
export function actionLink(
  { name, label, fields, isDestructive = false }: Action,
  values: Readonly<Record<string, string>>,
): Html {
  const look = isDestructive ? 'button danger' : 'button';
  if (fields.every((field) => Object.hasOwn(values, field.name))) {
    return html`<form method="post" action="./do?action=${name}">${Object.entries(values).map(
      ([field, value]) => html`<input type="hidden" name="${field}" value="${value}">`,
    )}<button class="${look}" type="submit">${label}…</button></form>`;
  }
  const query = new URLSearchParams({ action: name, ...values });
  return html`<a class="${look}" href="./do?${query.toString()}">${label}…</a>`;
}

/** How long before its end a record can be issued again from its row. */
const SOON_MS = 3 * DAY_MS;

/** Leads to the same terms again, for what ends within three days or has ended. */
export function renewal(
  action: Action,
  values: Readonly<Record<string, string>>,
  {
    valid_from: from,
    expires_at: end,
  }: { readonly valid_from: string; readonly expires_at: string },
  context: Context,
): Html {
  if (!isOffered(action, context) || instantOf(end) - context.now() > SOON_MS) return NO_HTML;
  const hours = Math.max(1, Math.round((instantOf(end) - instantOf(from)) / HOUR_MS));
  return actionLink({ ...action, label: 'Renew' }, { ...values, validity_hours: String(hours) });
}

/** The column of what can be done with each row, if the key may do it. */
export function actionColumn<Row>(
  action: Action,
  context: Context,
  cell: (row: Row) => Content,
): Column<Row>[] {
  return isOffered(action, context) ? [{ head: 'Action', cell }] : [];
}

/** Above a list: what adds to it. */
export function newButton(action: Action, values: Readonly<Record<string, string>> = {}): Html {
  const query = new URLSearchParams({ action: action.name, ...values });
  return html`<p class="actions"><a class="button primary" href="./do?${query.toString()}">${action.title}…</a></p>`;
}

function fieldOf(form: string, field: Field, value: string, isFocused: boolean): Html {
  const { name, label, kind, hint, isRequired = false } = field;
  if (kind === 'hidden') return html`<input type="hidden" name="${name}" value="${value}">`;
  const id = `${form}-${name}`;
  const described = hint === undefined ? NO_HTML : html` aria-describedby="${id}-hint"`;
  const note = hint === undefined ? '' : html`<span class="hint" id="${id}-hint">${hint}</span>`;
  const place = kind === 'id' || kind === 'pasted' ? 'field wide' : 'field';
  return html`<p class="${place}">${inputOf(id, field, value, html`${described}${isRequired ? html` required` : NO_HTML}${isFocused ? html` autofocus` : NO_HTML}`, label)}${note}</p>`;
}

function inputOf(id: string, field: Field, value: string, also: Html, label: string): Html {
  const { name, kind, choices = [] } = field;
  const labelled = html`<label for="${id}">${label}</label>`;
  switch (kind) {
    case 'select':
      return html`${labelled}<select id="${id}" name="${name}"${also}>${options(choices, value)}</select>`;
    case 'lines':
    case 'pasted':
      return html`${labelled}<textarea id="${id}" name="${name}" spellcheck="false"${also}>${value}</textarea>`;
    case 'number':
      return html`${labelled}<input type="number" id="${id}" name="${name}" min="1" value="${value}"${also}>`;
    default: {
      const look = kind === 'id' ? html` class="mono"` : NO_HTML;
      return html`${labelled}<input type="text" id="${id}" name="${name}" value="${value}" autocomplete="off" spellcheck="false"${look}${also}>`;
    }
  }
}

/** The form of an action, as it is first shown and, if something is wrong with it, as it was filled in. */
import { options } from '../pages/ui/fields.ts';
import { type Content, type Html, html, NO_HTML } from '../pages/ui/html.ts';
import type { Column } from '../pages/ui/table.ts';
import { instantOf } from '../protocol/records/record.ts';
import { type Action, type Field, isOffered } from './action.ts';
import type { Context } from './context.ts';

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
const SOON_MS = 3 * 86_400_000;

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
  const hours = Math.max(1, Math.round((instantOf(end) - instantOf(from)) / 3_600_000));
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

/**
 * Markup as typed values: a member that does not exist fails to compile, and `html` inserts strings and
 * numbers as text. Only what this module made is inserted as markup.
 */

class Markup {
  readonly text: string;
  /** Makes the type nominal: an object of the same shape is not markup. */
  protected readonly isMarkup = true;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

export type Html = Markup;

/** What a template takes. There is no `undefined`: a value that may be missing has to be decided on. */
export type Content = string | number | Html | readonly Html[];

export const NO_HTML: Html = new Markup('');

/** A template tag. Values in attributes have to be quoted; elsewhere inside a tag only markup may stand. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  const places = placesOf(strings);
  let text = strings[0] ?? '';
  for (let index = 0; index < values.length; index += 1) {
    text += contentText(values[index] ?? '', places[index] ?? 'markup');
    text += strings[index + 1] ?? '';
  }
  return new Markup(text);
}

/** For style sheets and scripts of this program, never for text from elsewhere. */
export function trustedMarkup(text: string): Html {
  return new Markup(text);
}

function contentText(value: Content, place: Place): string {
  if (value instanceof Markup) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  if (place === 'markup') throw new Error('Text may not stand inside a tag, a style or a script');
  return typeof value === 'number' ? String(value) : escaped(value);
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? '') : text;
}

/** Where text is safe once it is escaped, and where only markup may stand. */
type Place = 'text' | 'markup';

const knownPlaces = new WeakMap<TemplateStringsArray, readonly Place[]>();

/** Of each value of a template; found once for each template. */
function placesOf(strings: TemplateStringsArray): readonly Place[] {
  const known = knownPlaces.get(strings);
  if (known !== undefined) return known;
  let state: State = { at: 'content', element: '' };
  const places = strings.slice(0, -1).map((piece): Place => {
    state = stateAfter(piece, state);
    return state.at === 'content' || state.at === 'value' ? 'text' : 'markup';
  });
  knownPlaces.set(strings, places);
  return places;
}

interface State {
  /** `code` is the content of a script or style, where entities mean nothing. */
  readonly at: 'content' | 'tag' | 'value' | 'code';
  /** The name of the last tag, with a slash if it is a closing one. */
  readonly element: string;
}

/** Templates are well formed, with attributes in double quotes. */
function stateAfter(piece: string, before: State): State {
  let { at, element } = before;
  for (let index = 0; index < piece.length; index += 1) {
    const sign = piece[index];
    if (at === 'value') at = sign === '"' ? 'tag' : 'value';
    else if (at === 'tag' && sign === '"') at = 'value';
    else if (at === 'tag' && sign === '>') at = isCode(element) ? 'code' : 'content';
    else if (sign === '<' && (at === 'content' || piece[index + 1] === '/')) {
      at = 'tag';
      element = /^[!/]?[a-z0-9]*/i.exec(piece.slice(index + 1))?.[0] ?? '';
    }
  }
  return { at, element };
}

function isCode(element: string): boolean {
  return /^(?:script|style)$/i.test(element);
}

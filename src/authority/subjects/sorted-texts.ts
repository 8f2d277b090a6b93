/** Millions of texts in order. */
import sortedBtree from 'sorted-btree';

const BTree = sortedBtree.default;

export class SortedTexts extends BTree<string, undefined> {
  constructor(mostInNode?: number) {
    // The texts are compared by their code units, which is much faster than what the library does by default.
    super(undefined, (a, b) => (a < b ? -1 : a > b ? 1 : 0), mostInNode);
  }

  add(text: string): void {
    this.set(text, undefined);
  }

  /** The texts after this one, which need not be present. Read them before any text is added or removed. */
  *after(text: string): Generator<string> {
    for (const next of this.keys(text)) if (next !== text) yield next;
  }
}

/** Of ASCII texts, those that begin with `beginning` and come after `after`, in order. */
export function* beginningWith(
  beginning: string,
  texts: Pick<SortedTexts, 'after'>,
  after: string,
): Generator<string> {
  const before = textBefore(beginning);
  for (const text of texts.after(after > before ? after : before)) {
    if (!text.startsWith(beginning)) return;
    yield text;
  }
}

/** A text before all those that begin with this one, with no text that begins otherwise in between. */
function textBefore(beginning: string): string {
  const last = beginning.length - 1;
  if (last < 0) return '';
  return `${beginning.slice(0, last)}${String.fromCharCode(beginning.charCodeAt(last) - 1)}\uffff`;
}

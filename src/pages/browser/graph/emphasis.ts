/** What the reader points at or searches stands out in a drawing. */

/** Highlights a sovereign with its links and neighbors under the pointer and on focus. */
export function highlightNeighbors(): void {
  const ask = ({ target }: Event) => {
    const node =
      target instanceof Element ? target.closest<SVGElement>('.graph-picture .node') : null;
    if (node === null) clear();
    else light(node);
  };
  document.addEventListener('pointerover', ask);
  document.addEventListener('focusin', ask);
  document.addEventListener('focusout', clear);
}

function light(node: SVGElement): void {
  const picture = node.closest('.graph-picture');
  if (picture === null) return;
  const own = indexOf(node);
  const near = new Set<string | undefined>([own]);
  for (const link of picture.querySelectorAll<SVGElement>('.links .link')) {
    const [from, to] = endsOf(link);
    const isNear = from === own || to === own;
    link.classList.toggle('hot', isNear);
    if (isNear) near.add(from).add(to);
  }
  for (const each of picture.querySelectorAll<SVGElement>('.node')) {
    each.classList.toggle('hot', near.has(indexOf(each)));
  }
  picture.classList.add('focused');
}

/** The indexes of the two nodes that the link connects. */
function endsOf({ id }: SVGElement): readonly string[] {
  return id.split('-').slice(1);
}

function indexOf({ id }: SVGElement): string {
  return id.replace('node-', '');
}

function clear(): void {
  document.querySelector('.graph-picture.focused')?.classList.remove('focused');
}

/**
 * Filters the list and the drawing while the reader types. Without scripts, and where the list is incomplete, the
 * reader submits the form instead.
 */
export function narrowWhileTyping(): void {
  const search = document.querySelector<HTMLInputElement>('#q');
  const state = document.querySelector<HTMLSelectElement>('#state');
  const found = document.querySelector<HTMLElement>('#found');
  const rows = [...document.querySelectorAll<HTMLElement>('#sovereigns tbody tr')];
  if (search === null || state === null || found === null || rows.length === 0) return;
  const all = (found.textContent ?? '').replace(/^.* of /, '');
  if (rows.length < Number(found.dataset.all)) return;
  const narrow = () => {
    const shown = showRows(rows, search.value.trim().toLowerCase(), state.value);
    dimOthers(shown.size === rows.length ? null : shown, state.value);
    found.textContent = shown.size === rows.length ? all : `${shown.size} of ${all}`;
  };
  search.addEventListener('input', narrow);
  state.addEventListener('change', narrow);
}

/** Returns the nodes whose rows are shown; all of them have a row, in their order. */
function showRows(rows: readonly HTMLElement[], part: string, state: string): Set<string> {
  const shown = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const link = row.querySelector('a');
    const name = (link?.title || link?.textContent || '').toLowerCase();
    const states = [...row.querySelectorAll('.badge')].map(({ textContent }) => textContent);
    const fits = name.includes(part) && (state === '' || states.includes(state.replace('_', ' ')));
    row.hidden = !fits;
    if (fits) shown.add(String(index));
  }
  return shown;
}

/** Null shows everything. */
function dimOthers(shown: ReadonlySet<string> | null, state: string): void {
  const dim = (element: Element, isDim: boolean) => {
    element.classList.remove('lit', 'near');
    element.classList.toggle('dim', isDim);
  };
  for (const node of document.querySelectorAll<SVGElement>('.graph-picture .node')) {
    dim(node, shown !== null && !shown.has(indexOf(node)));
  }
  for (const link of document.querySelectorAll<SVGElement>('.graph-picture .links .link')) {
    const [from = '', to = ''] = endsOf(link);
    const isOf = state === '' || link.classList.contains(`s-${state}`);
    dim(link, shown !== null && !(shown.has(from) && shown.has(to) && isOf));
  }
}

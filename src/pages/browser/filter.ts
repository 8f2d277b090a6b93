interface Entry {
  readonly element: HTMLElement;
  readonly text: string;
  readonly link: HTMLElement | null;
}

/** Headings, descriptions and field names, but not the contents of examples. */
const SEARCHED = 'h3, .badge, :scope > p, .notes, .fields dt';

/**
 * Filters a list to entries that contain every typed word, hides empty groups and shows the number of matches. The
 * words are kept in the URL. Without scripts the whole page is shown.
 */
export function filterReference(): void {
  const field = document.querySelector<HTMLInputElement>('[data-filter]');
  if (field === null) return;
  const entries = [...document.querySelectorAll<HTMLElement>('[data-entry]')].map(entryOf);
  const typed = () => {
    show(entries, field.value);
    keepInUrl(field.value);
  };
  const read = () => {
    field.value = new URL(location.href).searchParams.get('q') ?? '';
    show(entries, field.value);
  };
  field.addEventListener('input', typed);
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    field.value = '';
    typed();
  });
  addEventListener('popstate', read);
  read();
  // Filtering moved the target of the URL fragment.
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function entryOf(element: HTMLElement): Entry {
  const parts = [...element.querySelectorAll(SEARCHED)].map(({ textContent }) => textContent);
  return {
    element,
    text: parts.join(' ').toLowerCase(),
    link: document.querySelector(`.contents a[href="#${element.id}"]`)?.closest('li') ?? null,
  };
}

function show(entries: readonly Entry[], search: string): void {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  let shown = 0;
  for (const { element, text, link } of entries) {
    const fits = words.every((word) => text.includes(word));
    element.hidden = !fits;
    if (link !== null) link.hidden = !fits;
    if (fits) shown += 1;
  }
  const remaining = '[data-entry]:not([hidden]), .contents li:not([hidden])';
  for (const group of document.querySelectorAll<HTMLElement>('[data-group]')) {
    group.hidden = group.querySelector(remaining) === null;
  }
  const none = document.querySelector<HTMLElement>('[data-filter-none]');
  if (none !== null) none.hidden = shown > 0;
  const count = document.querySelector('[data-filter-count]');
  const all = entries.length;
  if (count !== null)
    count.textContent = words.length === 0 ? `${all} total` : `${shown} of ${all}`;
}

function keepInUrl(search: string): void {
  const url = new URL(location.href);
  if (search.trim() === '') url.searchParams.delete('q');
  else url.searchParams.set('q', search);
  history.replaceState(null, '', url);
}

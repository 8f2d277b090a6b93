/**
 * Finds while the reader types. The arrow keys move through what was found, and Enter opens the first match. Without
 * scripts, the form is submitted.
 */
import { become, fetchedPage } from './live.ts';

const PAUSE_MS = 150;

export function findWhileTyping(): void {
  const field = document.querySelector<HTMLInputElement>('[data-search-field]');
  const found = document.getElementById('found');
  if (field !== null && found !== null) find(field, found);
}

function find(field: HTMLInputElement, found: HTMLElement): void {
  let shown = field.value.trim();
  let pause = 0;

  /** If the server does not answer, the next key asks again. */
  async function ask(): Promise<void> {
    const asked = field.value.trim();
    const address = `./search?q=${encodeURIComponent(asked)}`;
    const fresh = (await fetchedPage(address))?.getElementById('found');
    if (!fresh || asked !== field.value.trim()) return;
    become(found, fresh);
    history.replaceState(null, '', address);
    shown = asked;
  }

  field.addEventListener('input', () => {
    clearTimeout(pause);
    pause = setTimeout(ask, PAUSE_MS);
  });
  field.addEventListener('keydown', (event) => {
    const first = found.querySelector('a');
    // Enter also ends the composition of a character.
    if (
      event.isComposing ||
      event.key !== 'Enter' ||
      first === null ||
      shown !== field.value.trim()
    )
      return;
    event.preventDefault();
    first.click();
  });
  addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = [field, ...found.querySelectorAll('a')];
    const at = stops.indexOf(document.activeElement as HTMLAnchorElement);
    if (step === undefined || at < 0) return;
    stops[at + step]?.focus();
    event.preventDefault();
  });
}

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

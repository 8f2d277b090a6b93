/**
 * Opens the search over the page with `/` or Ctrl-K. The arrow keys move through what was found, Enter opens it, and
 * Escape closes the search. Without scripts, the link leads to the page of the search.
 */
import { fetchedPage } from './fetched-page.ts';

const PAUSE_MS = 150;

export function offerSearch(): void {
  const link = document.querySelector<HTMLAnchorElement>('[data-search]');
  if (link === null) return;
  let box: HTMLDialogElement | null = null;
  const open = (event: Event) => {
    event.preventDefault();
    box ??= searchBox(link.href);
    if (!box.open) box.showModal();
    box.querySelector('input')?.select();
  };
  link.addEventListener('click', (event) => event.ctrlKey || event.metaKey || open(event));
  addEventListener('keydown', (event) => isAsked(event) && open(event));
}

function isAsked({ key, ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (altKey) return false;
  if (key === 'k') return ctrlKey || metaKey;
  const isTyping = target instanceof Element && target.matches('input, select, textarea');
  return key === '/' && !ctrlKey && !metaKey && !isTyping;
}

function searchBox(address: string): HTMLDialogElement {
  const box = document.createElement('dialog');
  box.className = 'search-box';
  box.setAttribute('aria-label', 'Search');
  box.innerHTML =
    '<form role="search"><input type="search" name="q" maxlength="200" aria-label="Search everything public" placeholder="Name, id, path or command" autocomplete="off" spellcheck="false"></form><p class="small muted" role="status">Arrow keys move, Enter opens, Escape closes.</p><div class="found"></div>';
  document.body.append(box);
  const form = box.querySelector('form') as HTMLFormElement;
  const field = box.querySelector('input') as HTMLInputElement;
  const found = box.querySelector('div') as HTMLElement;
  let shown = '';
  let pause = 0;

  async function ask(): Promise<void> {
    const asked = field.value.trim();
    const fresh = asked === '' ? [] : await answerTo(address, asked);
    if (fresh === null || asked !== field.value.trim()) return;
    const [status, ...rest] = fresh;
    (box.querySelector('[role="status"]') as HTMLElement).textContent = status?.textContent ?? '';
    found.replaceChildren(...rest);
    shown = asked;
  }

  form.action = address;
  field.addEventListener('input', () => {
    clearTimeout(pause);
    pause = setTimeout(ask, PAUSE_MS);
  });
  form.addEventListener('submit', (event) => {
    const first = found.querySelector('a');
    if (first === null || shown !== field.value.trim()) return;
    event.preventDefault();
    first.click();
  });
  box.addEventListener('keydown', (event) => {
    // Otherwise the first Escape only empties a field that has text.
    if (event.key === 'Escape') {
      event.preventDefault();
      box.close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    const stops = [field, ...found.querySelectorAll('a')];
    const next = stops[stops.indexOf(document.activeElement as HTMLAnchorElement) + step];
    next?.focus();
    event.preventDefault();
  });
  box.addEventListener('click', ({ target }) => {
    if (target === box || (target instanceof Element && target.closest('a'))) box.close();
  });
  return box;
}

/** Null if the server does not answer: the next key asks again. */
async function answerTo(address: string, asked: string): Promise<Element[] | null> {
  const page = await fetchedPage(`${address}?q=${encodeURIComponent(asked)}`);
  if (page === null) return null;
  // Their addresses are relative to the page of the search.
  for (const each of page.querySelectorAll<HTMLAnchorElement>('#found a')) {
    each.href = new URL(each.getAttribute('href') ?? '', address).href;
  }
  return [...(page.getElementById('found')?.children ?? [])];
}

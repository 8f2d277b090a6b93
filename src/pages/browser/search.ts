/**
 * Finds while the reader types. The arrow keys move through what was found, and Enter opens the first match. Without
 * scripts, the form is submitted.
 */
import { become, fetchedPage } from './morph.ts';

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

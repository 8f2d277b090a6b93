/** What scripts add to the pages of the service; each part looks for its place first. */

import { highlightNeighbors, narrowWhileTyping } from './graph/emphasis.ts';
import { moveInGraph } from './graph/view.ts';
import { showHistory } from './history.ts';
import { keepLive } from './live.ts';
import { filterReference, findWhileTyping } from './search.ts';
import { chooseTheme, listenForSearch } from './theme.ts';
import { addBlockButtons, prepareValues } from './values.ts';

// In the head of the page, so that the chosen theme applies before anything is drawn.
chooseTheme();
listenForSearch();
document.addEventListener('DOMContentLoaded', () => {
  showAddress();
  prepareValues();
  addBlockButtons('.example pre');
  filterReference();
  findWhileTyping();
  keepLive();
  showHistory();
  highlightNeighbors();
  moveInGraph();
  narrowWhileTyping();
});

/** Replaces the placeholder host name: the page itself is the same for all readers. */
function showAddress(): void {
  const note = document.querySelector<HTMLElement>('[data-address]');
  const place = note?.dataset.address;
  if (place === undefined) return;
  for (const shown of document.querySelectorAll('pre.code, bdi')) {
    const text = shown.textContent ?? '';
    if (text.includes(place)) shown.textContent = text.replaceAll(place, ownAddress());
  }
  note?.remove();
}

/** Readers paste these commands into a shell, so the path must not contain shell metacharacters. */
const PLAIN = /^[\w.~/-]*$/;

function ownAddress(): string {
  const { origin, pathname } = new URL('.', location.href);
  return PLAIN.test(pathname) ? origin + pathname.replace(/\/$/, '') : origin;
}

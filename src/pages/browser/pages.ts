/** What scripts add to the pages of the service; each part looks for its place first. */
import { showAddress } from './address.ts';
import { addBlockButtons } from './copy.ts';
import { filterReference } from './filter.ts';
import { highlightNeighbors, narrowWhileTyping } from './graph/emphasis.ts';
import { moveInGraph } from './graph/view.ts';
import { showHistory } from './history.ts';
import { keepLive } from './live.ts';
import { findWhileTyping } from './search.ts';
import { chooseTheme, listenForSearch } from './theme.ts';
import { prepareValues } from './values.ts';

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

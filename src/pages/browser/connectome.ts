import { offerCopies } from './copy-ids.ts';
import { moveInGraph } from './graph-view.ts';
import { highlightNeighbors } from './highlight.ts';
import { keepLive } from './live.ts';
import { relateTimes } from './relative-times.ts';

highlightNeighbors();
moveInGraph();
offerCopies();
relateTimes();
keepLive();

const isTooLarge = () => document.querySelector('[data-live] .notice') !== null;
const wasTooLarge = isTooLarge();
// A page without a drawing has no style for one, such as that of a smaller state that was restored.
document.addEventListener('live-update', () => {
  if (wasTooLarge && !isTooLarge()) location.reload();
});

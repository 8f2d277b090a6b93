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

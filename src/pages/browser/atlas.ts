import { offerCopies } from './copy-ids.ts';
import { moveInGraph } from './graph-view.ts';
import { highlightNeighbors } from './highlight.ts';
import { narrowWhileTyping } from './narrow.ts';
import { relateTimes } from './relative-times.ts';

highlightNeighbors();
moveInGraph();
narrowWhileTyping();
offerCopies();
relateTimes();

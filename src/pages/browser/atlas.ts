import { moveInGraph } from './graph-view.ts';
import { highlightNeighbors } from './highlight.ts';
import { narrowWhileTyping } from './narrow.ts';
import { prepareValues } from './values.ts';

highlightNeighbors();
moveInGraph();
narrowWhileTyping();
prepareValues();

import { highlightNeighbors } from './highlight.ts';
import { narrowWhileTyping } from './narrow.ts';

highlightNeighbors();
narrowWhileTyping();

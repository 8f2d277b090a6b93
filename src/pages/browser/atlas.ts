import { offerCopies } from './copy-ids.ts';
import { highlightNeighbors } from './highlight.ts';
import { narrowWhileTyping } from './narrow.ts';
import { relateTimes } from './relative-times.ts';

highlightNeighbors();
narrowWhileTyping();
offerCopies();
relateTimes();

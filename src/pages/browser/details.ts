import { offerCopies } from './copy-ids.ts';
import { highlightNeighbors } from './highlight.ts';
import { relateTimes } from './relative-times.ts';

highlightNeighbors();
offerCopies();
relateTimes();

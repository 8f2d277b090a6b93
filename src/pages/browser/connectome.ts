import { highlightNeighbors } from './highlight.ts';
import { keepLive } from './live.ts';

highlightNeighbors();
keepLive();

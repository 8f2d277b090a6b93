import { offerCopies } from './copy-ids.ts';
import { showHistory } from './history.ts';
import { keepLive } from './live.ts';
import { relateTimes } from './relative-times.ts';

offerCopies();
relateTimes();
keepLive();
showHistory();

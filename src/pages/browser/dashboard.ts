import { offerCopies } from './copy-ids.ts';
import { showHistory } from './history.ts';
import { keepLive } from './live.ts';
import { relateTimes } from './relative-times.ts';

/** The history is not part of live updates. A minute is recorded up to two seconds after it has ended. */
const EVERY_MS = 62_000;

offerCopies();
relateTimes();
keepLive(EVERY_MS);
showHistory();

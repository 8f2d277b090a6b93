import { showHistory } from './history.ts';
import { keepLive } from './live.ts';
import { prepareValues } from './values.ts';

prepareValues();
keepLive();
showHistory();

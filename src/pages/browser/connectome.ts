import { keepLive } from './live.ts';
import { prepareValues } from './values.ts';

prepareValues();
keepLive();

import { prepareValues } from './values.ts';

prepareValues();

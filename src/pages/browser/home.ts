import { showAddress } from './address.ts';
import { prepareValues } from './values.ts';

showAddress();
prepareValues();

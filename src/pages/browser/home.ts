import { showAddress } from './address.ts';
import { offerCopies } from './copy-ids.ts';
import { filterReference } from './filter.ts';

showAddress();
offerCopies();
filterReference();

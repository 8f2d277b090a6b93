import { showAddress } from './address.ts';
import { offerCopies } from './copy-ids.ts';

showAddress();
offerCopies();

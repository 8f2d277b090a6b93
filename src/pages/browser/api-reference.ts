import { showAddress } from './address.ts';
import { addCopyButtons } from './copy.ts';
import { filterReference } from './filter.ts';

showAddress();
filterReference();
addCopyButtons();

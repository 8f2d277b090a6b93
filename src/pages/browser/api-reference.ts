import { addCopyButtons } from './copy.ts';
import { filterReference } from './filter.ts';

filterReference();
addCopyButtons();
